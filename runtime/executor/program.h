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
  // Addresses of all operands (PreparedInstruction::first_operand) for a microbatch; -1: once a step. Null
  // where absent.
  void* const* Addresses(StepKind kind, int microbatch) const {
    if (microbatch < 0) return variants_[0].data();
    return variants_[(kind == StepKind::kTrain ? train_ : eval_)[microbatch]].data();
  }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::vector<PreparedInstruction> instructions_;
  // Microbatches that use the same slots share their addresses. Variant 0 is slot 0 of everything.
  std::vector<std::vector<void*>> variants_;
  std::vector<int> train_, eval_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace pipec
