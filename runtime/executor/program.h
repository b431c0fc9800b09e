// A program whose kernels are prepared and whose addresses are known.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/arena.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

struct PreparedInstruction {
  std::unique_ptr<Kernel> kernel;
  int first_operand = 0;  // inputs, then outputs
  int inputs = 0;
  bool eval_only = false;
  bool once_a_step = false;
  bool guards = false;  // writes the loss or the gradient's norm: the step goes on only if it is finite
};

class PreparedProgram {
 public:
  // Errors name the node.
  static absl::StatusOr<PreparedProgram> Prepare(const plan::RankPlan& rank_plan,
                                                 const plan::Program& program,
                                                 absl::Span<const std::byte* const> constants,
                                                 std::byte* arena, Device& device);

  const std::vector<PreparedInstruction>& instructions() const { return instructions_; }
  // Addresses of all operands (PreparedInstruction::first_operand); null where absent. Results lie in the version slot
  // `written_version_slot`, everything else where the moment says. Valid until the next call.
  void* const* Addresses(const plan::RankPlan& rank_plan, const Moment& moment, int written_version_slot);
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::vector<PreparedInstruction> instructions_;
  // An operand in a buffer of several slots.
  struct Moving {
    int operand;
    int slot;  // index into slots_
    std::byte* in_slot;       // with the slot's offset its address
    const uint64_t* offsets;  // the plan's, by slot
  };
  struct Slot {
    int slot_class;
    bool written;
    int now;
  };
  int SlotIndex(int slot_class, bool written);

  std::vector<void*> addresses_;
  std::vector<Moving> moving_;
  std::vector<Slot> slots_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace pipec
