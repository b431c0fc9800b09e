#include "tests/cuda_emulation/operation.h"

#include <algorithm>

namespace cuda_emulation {

void Clock::Join(const Clock& other) {
  if (positions_.size() < other.positions_.size()) positions_.resize(other.positions_.size());
  for (size_t i = 0; i < other.positions_.size(); ++i)
    positions_[i] = std::max(positions_[i], other.positions_[i]);
}

void Clock::Set(int chain, uint32_t position) {
  if (positions_.size() <= static_cast<size_t>(chain)) positions_.resize(chain + 1);
  positions_[chain] = position;
}

bool Operation::After(uint32_t other) const {
  const OperationTable::Entry& entry = OperationTable::Get().At(other);
  return clock.Has(entry.chain, entry.position);
}

bool Operation::MayTouch(const void* begin, size_t bytes, bool write) const {
  if (!operands) return true;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  return std::any_of(operands->begin(), operands->end(), [&](const OperandRange& operand) {
    const auto first = reinterpret_cast<uintptr_t>(operand.begin);
    return address >= first && address + bytes <= first + operand.bytes && (operand.writable || !write);
  });
}

OperationTable& OperationTable::Get() {
  static OperationTable table;
  return table;
}

uint32_t OperationTable::Add(const Operation& operation) {
  entries_.push_back({operation.chain, operation.position, operation.name});
  return static_cast<uint32_t>(entries_.size());
}

void OperationTable::Clear() { entries_.clear(); }

}  // namespace cuda_emulation
