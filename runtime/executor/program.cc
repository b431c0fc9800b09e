#include "runtime/executor/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/executor/instruction.h"

namespace pipec {

absl::StatusOr<PreparedProgram> PreparedProgram::Prepare(const plan::RankPlan& rank_plan,
                                                         const plan::Program& program,
                                                         absl::Span<const std::byte* const> constants,
                                                         std::byte* arena, Device& device) {
  PreparedProgram prepared;
  std::vector<int> operands;  // tensors, -1: absent
  std::set<int> classes;
  for (const plan::Instruction& instruction : program.instructions()) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel =
        device.Prepare(SpecOf(rank_plan, instruction, constants));
    if (!kernel.ok()) {
      absl::string_view message = kernel.status().message();
      if (absl::StrContains(message, instruction.name())) return kernel.status();
      return absl::Status(kernel.status().code(), absl::StrCat("node '", instruction.name(), "' (",
                                                               instruction.op(), "): ", message));
    }
    PreparedInstruction row;
    prepared.workspace_bytes_ = std::max(prepared.workspace_bytes_, (*kernel)->workspace_bytes());
    row.kernel = *std::move(kernel);
    row.first_operand = static_cast<int>(operands.size());
    row.inputs = instruction.inputs_size();
    row.eval_only = instruction.eval_only();
    row.once_a_step = instruction.once_a_step();
    operands.insert(operands.end(), instruction.inputs().begin(), instruction.inputs().end());
    for (int32_t output : instruction.outputs()) {
      operands.push_back(output);
      row.guards |= output >= 0 && (output == rank_plan.loss() || output == rank_plan.gradient_norm());
    }
    prepared.instructions_.push_back(std::move(row));
  }
  for (int tensor : operands) {
    if (tensor >= 0) classes.insert(rank_plan.buffers(rank_plan.tensors(tensor).buffer()).slot_class());
  }
  std::map<std::vector<int>, int> known;
  auto variant = [&](StepKind kind, int microbatch) {
    std::vector<int> slots;
    for (int slot_class : classes) slots.push_back(SlotOf(rank_plan, slot_class, kind, microbatch));
    auto [it, is_new] = known.try_emplace(std::move(slots), static_cast<int>(prepared.variants_.size()));
    if (is_new) {
      std::vector<void*>& addresses = prepared.variants_.emplace_back();
      addresses.reserve(operands.size());
      for (int tensor : operands) {
        addresses.push_back(tensor < 0 ? nullptr
                                       : arena + RegionOf(rank_plan, tensor, kind, microbatch).begin);
      }
    }
    return it->second;
  };
  variant(StepKind::kEval, -1);
  for (int m = 0; m < static_cast<int>(rank_plan.microbatches()); ++m) {
    if (rank_plan.training()) prepared.train_.push_back(variant(StepKind::kTrain, m));
    prepared.eval_.push_back(variant(StepKind::kEval, m));
  }
  return prepared;
}

}  // namespace pipec
