#include "runtime/executor/program.h"

#include <algorithm>

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
  const auto add = [&](int tensor, bool written) {
    const int operand = static_cast<int>(prepared.addresses_.size());
    prepared.addresses_.push_back(tensor < 0 ? nullptr : arena + RegionOf(rank_plan, tensor, {StepKind::kEval}).begin);
    if (tensor < 0) return;
    const plan::Buffer& buffer = rank_plan.buffers(rank_plan.tensors(tensor).buffer());
    if (buffer.offsets_size() == 1) return;
    const int slot = prepared.SlotIndex(buffer.slot_class(), written);
    prepared.moving_.push_back(
        {operand, slot, arena + rank_plan.tensors(tensor).offset(), buffer.offsets().data()});
  };
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
    row.first_operand = static_cast<int>(prepared.addresses_.size());
    row.inputs = instruction.inputs_size();
    row.eval_only = instruction.eval_only();
    row.once_a_step = instruction.once_a_step();
    for (int32_t input : instruction.inputs()) add(input, false);
    for (int32_t output : instruction.outputs()) {
      add(output, true);
      row.guards |= output >= 0 && (output == rank_plan.loss() || output == rank_plan.gradient_norm());
    }
    prepared.instructions_.push_back(std::move(row));
  }
  return prepared;
}

int PreparedProgram::SlotIndex(int slot_class, bool written) {
  for (size_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].slot_class == slot_class && slots_[k].written == written) return static_cast<int>(k);
  }
  slots_.push_back({slot_class, written, 0});
  return static_cast<int>(slots_.size()) - 1;
}

void* const* PreparedProgram::Addresses(const plan::RankPlan& rank_plan, const Moment& moment,
                                        int written_version_slot) {
  Moment written = moment;
  written.version_slot = written_version_slot;
  for (Slot& slot : slots_) slot.now = SlotOf(rank_plan, slot.slot_class, slot.written ? written : moment);
  for (const Moving& moving : moving_)
    addresses_[moving.operand] = moving.in_slot + moving.offsets[slots_[moving.slot].now];
  return addresses_.data();
}

}  // namespace pipec
