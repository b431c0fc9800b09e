// Training with a plan that validates late: an update does not wait for the norms of the other ranks. It assumes what
// the norms decide, that nothing is clipped and all is finite, and that the loss weighs as much as in the step before.
// The next step begins with its parameters, and when the norms are needed, for what cannot run twice, they are there;
// then the scale that they give is the assumed one, or the update is made again, or was none, and the step begins
// again. All ranks compute the same numbers, so all agree. Where the assumption has just failed the next update
// waits.
#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/instruction.h"

namespace pipec {
namespace {

constexpr int kScaleWeight = 1;  // GradientScale (loss_sum, loss_weight?, norms...)
constexpr int64_t kZeros = 64;   // where they begin

}  // namespace

absl::Status Executor::PrepareLate() {
  int64_t largest = 0;
  for (int i = 0; i < plan_.train_size(); ++i) {
    const plan::Action& action = plan_.train(i);
    if (action.kind() == plan::NORM) late_.norm = i;
    if (action.kind() != plan::UPDATE || late_.first_update >= 0) continue;
    late_.first_update = i;
    late_.program = action.program();
  }
  const plan::Program& program = plan_.programs(late_.program);
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (programs_[late_.program].instructions()[i].guards) late_.instruction = i;
  }
  for (int tensor : program.instructions(late_.instruction).inputs()) {
    if (tensor >= 0) largest = std::max(largest, TypeOf(plan_.tensors(tensor)).bytes());
  }
  late_.operands.reserve(program.instructions(late_.instruction).inputs_size() + 3);
  ASSIGN_OR_RETURN(late_.assumed, device_.Allocate(kZeros + largest));
  return absl::OkStatus();
}

absl::Status Executor::RunLate(int64_t begin, StepSource& source) {
  if (options_.check_finite || options_.profile)
    return absl::InternalError("what is measured or looked at instruction by instruction runs step by step");
  late_.running = true;
  trace_.clear();
  round_starts_.fill(0);
  Running* ahead = nullptr;  // a step that is to be validated
  bool again = false;        // `step` has begun before
  for (int64_t step = begin;;) {
    if (options_.trace && !again) KeepLastRounds();
    const size_t traced = trace_.size();
    const bool admitted = source.Admit(step);
    Running& now = running_[step % steps_at_once()];
    if (admitted) {
      now = {{StepKind::kTrain, -1, step, newest_slot_}, newest_slot_, true};
      RETURN_IF_ERROR(source.Begin(step, &now.scalars, &now.data));
      RETURN_IF_ERROR(Place(now));
      for (int i = 0; i < static_cast<int>(plan_.validate_at()); ++i) RETURN_IF_ERROR(RunAction(i, now));
    }
    again = false;
    if (ahead != nullptr) {
      Running& last = *ahead;
      ahead = nullptr;
      RETURN_IF_ERROR(Validate(last));
      if (!late_.assumption_held) {
        last.result.redone = true;
        // The other ends of what the step has sent have begun it too.
        RETURN_IF_ERROR(AwaitRest(StepKind::kTrain));
        MarkUndone(step, traced);
        newest_slot_ = last.moment.version_slot;
        if (!last.result.stopped) RETURN_IF_ERROR(RunUpdates(last));
        again = true;
      }
      RETURN_IF_ERROR(source.End(step - 1, last.result));
      if (again) continue;
    }
    if (!admitted) break;
    for (int i = plan_.validate_at(); i < late_.first_update; ++i) RETURN_IF_ERROR(RunAction(i, now));
    RETURN_IF_ERROR(AwaitAllButNorms());
    const bool goes_ahead = late_.assumption_held;
    ASSIGN_OR_RETURN(now.assumed_scale, RunScale(now, /*assumed=*/true));
    if (!goes_ahead) RETURN_IF_ERROR(Validate(now));
    if (!now.result.stopped) RETURN_IF_ERROR(RunUpdates(now));
    if (goes_ahead) {
      now.result.ahead = true;
      ahead = &now;
    } else {
      RETURN_IF_ERROR(source.End(step, now.result));
    }
    ++step;
  }
  late_.running = false;
  return AwaitRest(StepKind::kTrain);
}

// Of the trace: the first actions of `step`, which stand behind `first`, and the updates of the one before.
void Executor::MarkUndone(int64_t step, size_t first) {
  for (size_t k = 0; k < trace_.size(); ++k) {
    TraceSlice& slice = trace_[k];
    slice.undone |= slice.step == step
                        ? k >= first
                        : slice.step == step - 1 && slice.action >= late_.first_update && slice.awaited < 0;
  }
}

// From the version with which the step began to the other slot, which is then the newest.
absl::Status Executor::RunUpdates(Running& step) {
  step.written_version_slot = 1 - step.moment.version_slot;
  for (int i = late_.first_update; i < plan_.train_size(); ++i) RETURN_IF_ERROR(RunAction(i, step));
  newest_slot_ = step.written_version_slot;
  return absl::OkStatus();
}

// The scale, norm and loss that the norms of all ranks give.
absl::Status Executor::Validate(Running& step) {
  step_ = step.moment.step;
  RETURN_IF_ERROR(AwaitAll(StepKind::kTrain, list(StepKind::kTrain).plan.actions[late_.norm].exchanges,
                           late_.first_update));
  ASSIGN_OR_RETURN(const double scale, RunScale(step, /*assumed=*/false));
  RETURN_IF_ERROR(CheckGuard(late_.program, late_.instruction, &step.result));
  late_.assumption_held = !step.result.stopped && scale == step.assumed_scale;
  return absl::OkStatus();
}

absl::StatusOr<double> Executor::RunScale(Running& step, bool assumed) {
  PreparedProgram& program = programs_[late_.program];
  const PreparedInstruction& scale = program.instructions()[late_.instruction];
  const plan::Instruction& planned = plan_.programs(late_.program).instructions(late_.instruction);
  void* const* operands =
      program.Addresses(plan_, step.moment, step.written_version_slot) + scale.first_operand;
  late_.operands.assign(operands, operands + scale.inputs + planned.outputs_size());
  void*& weight = late_.operands[kScaleWeight];
  double weighs = 0;
  if (assumed) {
    for (int k = 0; k < scale.inputs; ++k) {
      if (late_.operands[k] != nullptr) late_.operands[k] = late_.assumed + (k == kScaleWeight ? 0 : kZeros);
    }
  } else if (weight != nullptr) {
    RETURN_IF_ERROR(device_.CopyToHost(*stream_, &weighs, weight, sizeof weighs));
    RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
    RETURN_IF_ERROR(device_.CopyToDevice(*stream_, late_.assumed, &weighs, sizeof weighs));
  }
  RETURN_IF_ERROR(scale.kernel->Launch(*stream_, KernelArguments{late_.operands.data(),
                                                                 late_.operands.data() + scale.inputs,
                                                                 step.placed_scalars, workspace_}));
  return ReadScalar(planned.outputs(0));
}

absl::Status Executor::AwaitAllButNorms() {
  const List& trained = list(StepKind::kTrain);
  for (int exchange = 0; exchange < static_cast<int>(trained.plan.exchanges.size()); ++exchange) {
    if (trained.plan.exchanges[exchange].action != late_.norm)
      RETURN_IF_ERROR(AwaitAll(StepKind::kTrain, {exchange}, late_.norm));
  }
  return absl::OkStatus();
}

}  // namespace pipec
