#include "runtime/executor/executor.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/executor/finite.h"
#include "runtime/executor/instruction.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

absl::StatusOr<StepResult> Executor::Run(StepKind kind, absl::Span<const StepScalars> scalars,
                                         const StepData& data) {
  StepResult result;
  const ListPlan& list = this->list(kind).plan;
  step_ = scalars[0].step;
  trace_.clear();
  // The first step finds cold caches and pages that nobody has written.
  if (options_.profile && steps_run_++ == 1) ForgetTimes();
  const int actions = static_cast<int>(list.actions.size());
  for (int i = 0; i < actions && !result.stopped; ++i) {
    RETURN_IF_ERROR(RunAction(kind, i, scalars, data, &result));
  }
  // A stopped step stops before its updates, after all messages: every rank finds the same numbers.
  for (int exchange : list.last_waits) RETURN_IF_ERROR(Await(kind, exchange, actions - 1));
  RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
  return result;
}

absl::Status Executor::RunAction(StepKind kind, int index, absl::Span<const StepScalars> scalars,
                                 const StepData& data, StepResult* result) {
  const ActionPlan& row = list(kind).plan.actions[index];
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  for (int exchange : row.waits) RETURN_IF_ERROR(Await(kind, exchange, index));
  const bool timed = options_.trace || options_.profile;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  in_instructions_ = 0;
  const int m = std::max(action.microbatch(), 0);
  for (int port : row.feeds) {
    const int tensor = plan_.inputs(port).tensor();
    RETURN_IF_ERROR(device_.CopyToDevice(*stream_, Address(tensor, kind, action.microbatch()),
                                         data.inputs[port * plan_.microbatches() + m],
                                         TypeOf(plan_.tensors(tensor)).bytes()));
  }
  if (action.program() >= 0) RETURN_IF_ERROR(RunProgram(kind, index, scalars[m], result));
  for (int exchange : row.exchanges) {
    absl::Status status = Start(kind, exchange);
    if (!status.ok()) return Annotate(kind, index, status);
  }
  if (!data.outputs.empty()) {
    for (int port : row.deliveries) {
      std::byte* to = data.outputs[port * plan_.microbatches() + m];
      const int tensor = plan_.outputs(port).tensor();
      if (to == nullptr) continue;
      RETURN_IF_ERROR(device_.CopyToHost(*stream_, to, Address(tensor, kind, action.microbatch()),
                                         TypeOf(plan_.tensors(tensor)).bytes()));
    }
  }
  const Clock::time_point end = timed ? Clock::now() : Clock::time_point();
  if (options_.trace) trace_.push_back({index, -1, begin, end});
  if (options_.profile && action.program() >= 0 && action.microbatch() >= 0)
    beside_instructions_.Add(Seconds(end - begin) - in_instructions_);
  if (action.kind() == plan::NORM || action.kind() == plan::REDUCE_TIED) {
    for (int exchange : row.exchanges) RETURN_IF_ERROR(Await(kind, exchange, index));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunProgram(StepKind kind, int index, const StepScalars& scalars, StepResult* result) {
  if (options_.check_finite || options_.profile) return RunInstrumented(kind, index, scalars, result);
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  const PreparedProgram& program = programs_[action.program()];
  void* const* addresses = program.Addresses(kind, action.microbatch());
  const bool training = kind == StepKind::kTrain;
  const PreparedInstruction* first = program.instructions().data();
  const int count = static_cast<int>(program.instructions().size());
  for (int i = 0; i < count; ++i) {
    const PreparedInstruction& instruction = first[i];
    if (training && instruction.eval_only) continue;
    if (instruction.once_a_step && action.microbatch() > 0) continue;
    void* const* operands = addresses + instruction.first_operand;
    absl::Status status = instruction.kernel->Launch(
        *stream_, KernelArguments{operands, operands + instruction.inputs, &scalars, workspace_});
    if (!status.ok()) return Annotate(kind, index, AnnotateNode(action.program(), i, status));
    if (training && instruction.guards) {
      RETURN_IF_ERROR(CheckGuard(action.program(), i, result));
      if (result->stopped) break;
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::RunInstrumented(StepKind kind, int index, const StepScalars& scalars,
                                       StepResult* result) {
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  const PreparedProgram& program = programs_[action.program()];
  void* const* addresses = program.Addresses(kind, action.microbatch());
  const bool training = kind == StepKind::kTrain;
  for (int i = 0; i < static_cast<int>(program.instructions().size()); ++i) {
    const PreparedInstruction& instruction = program.instructions()[i];
    const plan::Instruction& planned = plan_.programs(action.program()).instructions(i);
    if (training && instruction.eval_only) continue;
    if (instruction.once_a_step && action.microbatch() > 0) continue;
    void* const* operands = addresses + instruction.first_operand;
    bool nan_before = false, bad_before = false;
    const bool look = options_.check_finite && !(result->first.found && result->first.origin);
    if (look) {
      ASSIGN_OR_RETURN(bad_before, HasNonFinite(planned.inputs(), operands, &nan_before));
    }
    RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
    const Clock::time_point begin = Clock::now();
    absl::Status status = instruction.kernel->Launch(
        *stream_, KernelArguments{operands, operands + instruction.inputs, &scalars, workspace_});
    if (!status.ok()) return Annotate(kind, index, AnnotateNode(action.program(), i, status));
    RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
    const double seconds = Seconds(Clock::now() - begin);
    in_instructions_ += seconds;
    measured_[action.program()][i].Add(seconds);
    if (look) {
      bool nan_after = false;
      ASSIGN_OR_RETURN(const bool bad_after,
                       HasNonFinite(planned.outputs(), operands + instruction.inputs, &nan_after));
      // A mask of -infinity is no fault: the op that only passes infinity on is not the origin.
      const bool origin = bad_after && (!bad_before || (nan_after && !nan_before));
      if (origin || (bad_after && !result->first.found)) {
        const int stage = static_cast<int>(plan_.programs(action.program()).stage());
        result->first = {true,          origin,         index,       stage, action.microbatch(),
                         action.kind(), planned.name(), planned.op()};
      }
    }
    if (training && instruction.guards) {
      RETURN_IF_ERROR(CheckGuard(action.program(), i, result));
      if (result->stopped) break;
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckGuard(int program, int instruction, StepResult* result) {
  for (int tensor : plan_.programs(program).instructions(instruction).outputs()) {
    if (tensor < 0 || (tensor != plan_.loss() && tensor != plan_.gradient_norm())) continue;
    ASSIGN_OR_RETURN(const double value, ReadScalar(tensor));
    if (!std::isfinite(value)) result->stopped = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Executor::HasNonFinite(const google::protobuf::RepeatedField<int32_t>& tensors,
                                            void* const* addresses, bool* nan) {
  bool any = false;
  for (int i = 0; i < tensors.size(); ++i) {
    if (tensors[i] < 0) continue;
    const TensorType type = TypeOf(plan_.tensors(tensors[i]));
    if (!IsFloat(type.dtype)) continue;
    if (static_cast<int64_t>(scratch_.size()) < type.bytes()) scratch_.resize(type.bytes());
    RETURN_IF_ERROR(device_.CopyToHost(*stream_, scratch_.data(), addresses[i], type.bytes()));
    RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
    const NonFiniteKinds kinds = FindNonFinite(type.dtype, absl::MakeSpan(scratch_).first(type.bytes()));
    any |= kinds.any();
    *nan |= kinds.nan;
  }
  return any;
}

absl::Status Executor::Start(StepKind kind, int exchange) {
  List& list = this->list(kind);
  const plan::Message& message = plan_.messages(list.plan.exchanges[exchange].message);
  const int peer = static_cast<int>(message.peer_rank());
  if (options_.profile) list.times[exchange].posted = Clock::now();
  return message.sends() ? transport_.Send(*stream_, peer, list.tags[exchange], list.pieces[exchange],
                                           *list.events[exchange])
                         : transport_.Receive(*stream_, peer, list.tags[exchange], list.pieces[exchange],
                                              *list.events[exchange]);
}

absl::Status Executor::Await(StepKind kind, int exchange, int action) {
  List& list = this->list(kind);
  const int awaited = list.plan.exchanges[exchange].action;
  const bool timed = options_.trace || options_.profile;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  absl::Status status = stream_->Wait(*list.events[exchange], absl::Now() + options_.timeout);
  const Clock::time_point end = timed ? Clock::now() : Clock::time_point();
  if (options_.trace) trace_.push_back({action, awaited, begin, end});
  if (options_.profile) {
    list.times[exchange].awaited = begin;
    list.times[exchange].done = end;
  }
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? status : Annotate(kind, awaited, status);
  const plan::Message& message = plan_.messages(list.plan.exchanges[exchange].message);
  return Annotate(kind, awaited,
                  absl::DeadlineExceededError(
                      absl::StrCat("waited ", absl::FormatDuration(options_.timeout), " for ",
                                   message.sends() ? "rank " : "a message from rank ", message.peer_rank(),
                                   message.sends() ? " to take the message" : "", " (--timeout)")));
}

absl::Status Executor::Annotate(StepKind kind, int index, const absl::Status& status) const {
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  std::string where = absl::StrCat("rank ", plan_.rank());
  if (action.stage() >= 0) absl::StrAppend(&where, ", stage ", action.stage());
  absl::StrAppend(&where, ", action ", ActionName(plan_, action));
  if (action.microbatch() >= 0) absl::StrAppend(&where, ", microbatch ", action.microbatch());
  if (plan_.training()) {
    absl::StrAppend(&where, kind == StepKind::kTrain ? ", step " : ", evaluation after step ",
                    step_ + (kind == StepKind::kTrain));
  }
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

absl::Status Executor::AnnotateNode(int program, int instruction, const absl::Status& status) const {
  const plan::Instruction& planned = plan_.programs(program).instructions(instruction);
  return absl::Status(status.code(),
                      absl::StrCat("node '", planned.name(), "' (", planned.op(), "): ", status.message()));
}

absl::Status Executor::Read(int tensor, absl::Span<std::byte> to) {
  RETURN_IF_ERROR(device_.CopyToHost(*stream_, to.data(), Address(tensor, StepKind::kEval, -1), to.size()));
  return stream_->Synchronize(absl::Now() + options_.timeout);
}

absl::StatusOr<double> Executor::ReadScalar(int tensor) {
  double value = 0;
  RETURN_IF_ERROR(Read(tensor, absl::MakeSpan(reinterpret_cast<std::byte*>(&value), sizeof value)));
  return value;
}

absl::StatusOr<int64_t> Executor::ReadCount(int tensor) {
  int64_t value = 0;
  RETURN_IF_ERROR(Read(tensor, absl::MakeSpan(reinterpret_cast<std::byte*>(&value), sizeof value)));
  return value;
}

}  // namespace pipec
