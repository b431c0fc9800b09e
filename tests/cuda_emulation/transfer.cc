#include "tests/cuda_emulation/transfer.h"

#include <string>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {
namespace {

// An operation is one thread.
class InOperation : public Accessor {
 public:
  explicit InOperation(const Operation& operation) : Accessor({operation.run, 0, 0}), operation_(operation) {}
  bool After(const Moment& earlier) const override {
    return earlier.run == now.run || operation_.After(earlier.run);
  }
  uint32_t BlockOf(uint32_t) const override { return 0; }

 private:
  const Operation& operation_;
};

std::string Describe(size_t bytes, Access access) {
  return (access == Access::kRead ? "reads " : "writes ") + std::to_string(bytes) + " bytes";
}

}  // namespace

std::optional<Failure> CheckCopy(const Operation& operation, const void* begin, size_t bytes, Access access) {
  if (bytes == 0) return std::nullopt;
  const std::string what = Describe(bytes, access);
  const Machine& machine = Machine::Get();
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const Allocation* memory = machine.memory.Find(address);
  if (!memory || !memory->Contains(address, bytes)) {
    return Failure{cudaErrorIllegalAddress, what + (memory ? ", across the end of " + memory->Describe()
                                                           : ", " + machine.memory.DescribeNear(address))};
  }
  const InOperation accessor(operation);
  const Conflict conflict = Touch(&memory->CellAt(address), bytes, access, accessor);
  if (conflict.earlier.run == 0) return std::nullopt;
  const size_t byte = address + conflict.at - reinterpret_cast<uintptr_t>(memory->begin());
  return Failure{cudaErrorLaunchFailure,
                 "race: " + what + " of " + memory->Describe() + ", byte " + std::to_string(byte) +
                     " of which " + OperationTable::Get().At(conflict.earlier.run).name +
                     (conflict.wrote ? " writes" : " reads") + " with nothing to order the two"};
}

std::optional<Failure> CheckRange(const Operation& operation, const void* begin, size_t bytes,
                                  Access access) {
  const Machine& machine = Machine::Get();
  const Allocation* memory = machine.memory.Find(reinterpret_cast<uintptr_t>(begin));
  if (bytes > 0 && memory && !machine.MayReach(operation.device, memory->device())) {
    return Failure{cudaErrorIllegalAddress, Describe(bytes, access) + " of device " +
                                                std::to_string(memory->device()) + ", to which device " +
                                                std::to_string(operation.device) + " has no peer access"};
  }
  if (bytes > 0 && !operation.MayTouch(begin, bytes, access != Access::kRead)) {
    return Failure{cudaErrorIllegalAddress, Describe(bytes, access) + " outside its operands"};
  }
  return CheckCopy(operation, begin, bytes, access);
}

}  // namespace cuda_emulation
