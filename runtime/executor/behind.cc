// Steps on a device that is behind its host. A step is enqueued whole, as one piece of work that repeats, before
// anybody knows how the one before has ended; the host reads loss and norm a step later. Where they are not finite
// the device has closed its gate (LaggingDevice): neither that step nor the next has changed anything, and the next
// begins again.
#include <cmath>

#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/verify.h"

namespace pipec {

absl::Status Executor::PrepareBehind() {
  ASSIGN_OR_RETURN(copies_, device_.NewStream());
  for (int k = 0; k < steps_at_once(); ++k) {
    ASSIGN_OR_RETURN(std::unique_ptr<StepBlock> block, StepBlock::Create(plan_, device_, *lagging_));
    block_bytes_ += block->device_bytes();
    blocks_.push_back(std::move(block));
  }
  for (StepKind kind : {StepKind::kTrain, StepKind::kEval}) {
    for (const plan::Action& action : ActionsOf(plan_, kind))
      action_names_[kind == StepKind::kTrain ? 0 : 1].push_back(ActionName(plan_, action));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunBehind(int64_t begin, StepSource& source) {
  if (options_.check_finite || options_.profile || options_.trace)
    return absl::InternalError("what is measured or looked at instruction by instruction runs step by step");
  runs_behind_ = true;
  Running* before = nullptr;  // a step that has not ended
  for (int64_t step = begin;;) {
    const bool admitted = source.Admit(step);
    Running& now = running_[step % steps_at_once()];
    if (admitted) {
      now = {{StepKind::kTrain, -1, step, newest_slot_}, newest_slot_, true};
      if (plan_.validates_late()) newest_slot_ = now.written_version_slot = 1 - newest_slot_;
      RETURN_IF_ERROR(source.Begin(step, &now.scalars, &now.data));
      RETURN_IF_ERROR(Place(now));
      RETURN_IF_ERROR(EnqueueStep(now));
    }
    bool again = false;  // `step` began in vain
    if (before != nullptr) {
      RETURN_IF_ERROR(EndStep(*before));
      again = admitted && before->result.stopped;
      if (again) RETURN_IF_ERROR(EndStep(now));
      if (before->result.stopped) RETURN_IF_ERROR(AnnotateStep(before->moment, lagging_->OpenGate(*stream_)));
      RETURN_IF_ERROR(source.End(step - 1, before->result));
      before = nullptr;
    }
    if (again) continue;
    if (!admitted) break;
    before = &now;
    ++step;
  }
  runs_behind_ = false;
  return AwaitRest(StepKind::kTrain);
}

// What a step enqueues depends on its kind, the slots of weights that it reads, and its block.
int64_t Executor::WorkOf(const Running& step) const {
  const auto blocks = static_cast<int64_t>(blocks_.size());
  const int64_t block = step.moment.step % blocks;
  return ((step.moment.kind == StepKind::kTrain ? 0 : 1) * int64_t{1000} + step.moment.version_slot) *
             blocks +
         block;
}

absl::Status Executor::EnqueueStep(Running& step) {
  const absl::Time deadline = absl::Now() + options_.timeout;
  step_ = step.moment.step;
  bool named = false;  // where it went wrong
  const auto enqueue = [&] {
    const absl::Status status = EnqueueActions(step);
    named = !status.ok();
    return status;
  };
  absl::Status status = lagging_->Repeat(*stream_, WorkOf(step), enqueue, deadline);
  if (named) return status;
  if (status.ok()) status = stream_->Record(step.block->ended());
  return AnnotateStep(step.moment, status);
}

absl::Status Executor::EnqueueActions(Running& step) {
  const StepKind kind = step.moment.kind;
  const std::vector<std::string>& names = action_names_[kind == StepKind::kTrain ? 0 : 1];
  for (size_t i = 0; i < names.size(); ++i) {
    lagging_->BeginRange(names[i].c_str());
    const absl::Status status = RunAction(static_cast<int>(i), step);
    lagging_->EndRange();
    RETURN_IF_ERROR(status);
  }
  RETURN_IF_ERROR(AwaitExchanges(kind));
  if (kind == StepKind::kEval) return absl::OkStatus();
  StepFigures& figures = step.block->figures();
  for (const auto& [tensor, to] :
       {std::pair(plan_.loss(), &figures.loss), std::pair(plan_.gradient_norm(), &figures.gradient_norm)}) {
    if (tensor < 0) continue;
    RETURN_IF_ERROR(AnnotateStep(
        step.moment, device_.CopyToHost(*stream_, to, Address(tensor, step.moment), sizeof *to)));
  }
  return absl::OkStatus();
}

absl::Status Executor::EndStep(Running& step) {
  RETURN_IF_ERROR(AnnotateStep(step.moment, step.block->ended().Await(absl::Now() + options_.timeout)));
  if (step.moment.kind == StepKind::kEval) return absl::OkStatus();
  const StepFigures& figures = step.block->figures();
  if (plan_.loss() >= 0) step.result.loss = figures.loss;
  if (plan_.gradient_norm() >= 0) step.result.gradient_norm = figures.gradient_norm;
  step.result.stopped =
      !std::isfinite(step.result.loss.value_or(0)) || !std::isfinite(step.result.gradient_norm.value_or(0));
  return absl::OkStatus();
}

absl::Status Executor::CloseGate(const Moment& moment) {
  const auto figure = [&](int tensor) { return tensor < 0 ? nullptr : Address(tensor, moment); };
  return lagging_->CloseGateUnlessFinite(*stream_, figure(plan_.loss()), figure(plan_.gradient_norm()));
}

}  // namespace pipec
