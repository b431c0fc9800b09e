// What the runtime adds to each prepared instruction: a rank of 1000 instructions on the null device, whose
// kernels do nothing. The figure holds all of it: resolving addresses, the launch through the device
// interface, and the action around it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/null/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/verify.h"
#include "runtime/transport/local/local_transport.h"

namespace pipec {
namespace {

constexpr int kInstructions = 1000;  // of an action
constexpr int kMicrobatches = 8;
constexpr int kSlots = 2;
constexpr int kRounds = 31;

// One stage whose F adds two tensors again and again, in slots as a pipeline has them.
plan::RankPlan SyntheticPlan() {
  plan::RankPlan p;
  p.set_format(kPlanFormat);
  p.set_ranks(1);
  p.set_virtual_stages(1);
  p.set_microbatches(kMicrobatches);
  p.set_microbatch_size(1);
  p.set_replicas(1);
  p.add_rank_of_stage(0);
  plan::SlotClass* slots = p.add_slot_classes();
  slots->set_slots(kSlots);
  for (int m = 0; m < kMicrobatches; ++m) slots->add_eval(m % kSlots);
  plan::Program* program = p.add_programs();
  program->set_kind(plan::F);
  uint64_t end = 0;
  for (int i = 0; i <= kInstructions + 1; ++i) {
    plan::Buffer* buffer = p.add_buffers();
    buffer->set_kind(plan::ACTIVATION);
    buffer->set_bytes(64);
    for (int slot = 0; slot < kSlots; ++slot, end += 64) buffer->add_offsets(end);
    plan::Tensor* tensor = p.add_tensors();
    tensor->set_dtype(1);
    tensor->add_shape(16);
    tensor->set_buffer(i);
    if (i < 2) continue;
    plan::Instruction* instruction = program->add_instructions();
    instruction->set_op("Add");
    instruction->set_name(absl::StrCat("add", i));
    instruction->add_inputs(i - 1);
    instruction->add_inputs(i - 2);
    instruction->add_outputs(i);
  }
  p.set_arena_bytes(end);
  for (int m = 0; m < kMicrobatches; ++m) {
    plan::Action* action = p.add_eval();
    action->set_kind(plan::F);
    action->set_microbatch(m);
  }
  for (auto scalar :
       {&plan::RankPlan::set_loss_sum, &plan::RankPlan::set_loss_weight, &plan::RankPlan::set_correct,
        &plan::RankPlan::set_predictions, &plan::RankPlan::set_gradient_norm, &plan::RankPlan::set_loss}) {
    (p.*scalar)(-1);
  }
  return p;
}

absl::Status Measure() {
  const plan::RankPlan rank_plan = SyntheticPlan();
  if (absl::Status status = VerifyRankPlan(rank_plan); !status.ok()) return status;
  LocalHub hub(1);
  auto device = MakeNullDevice();
  auto transport = hub.Connect(0, *device);
  auto executor = Executor::Create(rank_plan, "", *device, *transport, {});
  if (!executor.ok()) return executor.status();
  const std::vector<StepScalars> scalars(kMicrobatches);
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<StepResult> done = (*executor)->Run(StepKind::kEval, scalars, {});
    if (!done.ok()) return done.status();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    rounds.push_back(taken.count() / (kInstructions * kMicrobatches));
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  std::printf("dispatch_us %.4f us\n", rounds[kRounds / 2]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipec

int main() {
  const absl::Status status = pipec::Measure();
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench-dispatch: %s\n", status.ToString().c_str());
  return 1;
}
