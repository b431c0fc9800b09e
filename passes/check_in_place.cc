#include "passes/check_in_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

class InPlaceCheck {
 public:
  InPlaceCheck(const RankMemory& memory, const Program& program)
      : memory_(memory),
        in_training_(IsCompute(program.kind)),
        in_evaluation_(program.kind == ActionKind::kF) {}

  absl::Status Check(const Node& node) const {
    const Alias alias = AliasOf(node);
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      const Value* result = node.outputs()[k];
      if (!result) continue;
      const Value* under = nullptr;  // the operand on which it may lie
      if (alias == Alias::kSameMemory || (alias == Alias::kInPlace && k == 0))
        under = node.input(AliasInput(node, static_cast<int>(k)));
      if (alias == Alias::kSameMemory && !(under && Place(*result).buffer == Place(*under).buffer))
        return Fault(node, *result, "does not lie on its operand");
      if (alias != Alias::kSameMemory && Keeps(BufferOf(*result)))
        return Fault(node, *result,
                     absl::StrCat("lies in ", BufferOf(*result).name, ", which keeps its contents"));
      for (const Value* operand : node.inputs()) {
        if (operand && LiesOn(*result, *operand, operand == under))
          return Fault(node, *result, absl::StrCat("lies on operand ", operand->name()));
      }
      for (size_t j = 0; j < k; ++j) {
        const Value* other = node.outputs()[j];
        if (other && LiesOn(*result, *other, false))
          return Fault(node, *result, absl::StrCat("lies on result ", other->name()));
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Fault(const Node& node, const Value& result, absl::string_view what) {
    return absl::InternalError(
        absl::StrCat("memory: ", result.name(), " of ", node.name(), " (", node.op(), ") ", what));
  }

  const Location& Place(const Value& value) const { return memory_.locations.find(&value)->second; }
  const Buffer& BufferOf(const Value& value) const { return memory_.buffers[Place(value).buffer]; }

  // Whether the two have bytes in common in some microbatch; `wholly`: other than all of them.
  bool LiesOn(const Value& a, const Value& b, bool wholly) const {
    const int64_t bytes = a.type.bytes(), other_bytes = b.type.bytes();
    if (bytes == 0 || other_bytes == 0) return false;
    const Buffer &buffer = BufferOf(a), &other = BufferOf(b);
    const auto meet = [&](int slot, int other_slot) {
      const int64_t begin = buffer.offsets[slot] + Place(a).offset;
      const int64_t other_begin = other.offsets[other_slot] + Place(b).offset;
      if (wholly && begin == other_begin && bytes == other_bytes) return false;
      return begin < other_begin + other_bytes && other_begin < begin + bytes;
    };
    if (&buffer == &other) return meet(0, 0);
    for (const bool training : {true, false}) {
      if (!(training ? in_training_ : in_evaluation_)) continue;
      const absl::Span<const int> slots = Slots(buffer, training), other_slots = Slots(other, training);
      for (size_t m = 0; m < std::max(slots.size(), other_slots.size()); ++m) {
        if (meet(m < slots.size() ? slots[m] : 0, m < other_slots.size() ? other_slots[m] : 0)) return true;
      }
    }
    // What happens once a step is in the first slot.
    return (!in_training_ || (buffer.slot_class < 0 && other.slot_class < 0)) && meet(0, 0);
  }

  static bool Keeps(const Buffer& buffer) {
    return buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kGradient ||
           buffer.kind == BufferKind::kOptimizerState || buffer.kind == BufferKind::kConstant;
  }

  // By microbatch.
  absl::Span<const int> Slots(const Buffer& buffer, bool training) const {
    if (buffer.slot_class < 0) return {};
    const SlotClass& slots = memory_.slot_classes[buffer.slot_class];
    return training ? slots.train : slots.eval;
  }

  const RankMemory& memory_;
  const bool in_training_, in_evaluation_;  // microbatch by microbatch
};

}  // namespace

absl::Status CheckInPlace(const RankMemory& memory) {
  for (const Program& program : memory.programs) {
    const InPlaceCheck check(memory, program);
    for (const Node* node : program.nodes) RETURN_IF_ERROR(check.Check(*node));
  }
  return absl::OkStatus();
}

}  // namespace pipec
