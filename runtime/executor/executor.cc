#include "runtime/executor/executor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/executor/finite.h"
#include "runtime/executor/instruction.h"

namespace pipec {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

absl::StatusOr<StepResult> Executor::Run(StepKind kind, absl::Span<const StepScalars> scalars,
                                         const StepData& data) {
  if (kind == StepKind::kTrain && plan_.asynchronous())
    return absl::InternalError("a step of an asynchronous plan has no end of its own");
  Running step{{kind, -1, scalars[0].step, newest_slot_}, newest_slot_, true, scalars, data, {}};
  trace_.clear();
  // The first step finds cold caches and pages that nobody has written.
  if (options_.profile && steps_run_++ == 1) ForgetTimes();
  const bool versions = kind == StepKind::kTrain && plan_.validates_late();
  if (versions) step.written_version_slot = 1 - newest_slot_;
  RETURN_IF_ERROR(Place(step));
  const bool measured = options_.trace || options_.profile || options_.check_finite;
  if (lagging_ != nullptr && kind == StepKind::kEval && !measured) {
    RETURN_IF_ERROR(EnqueueStep(step));
    RETURN_IF_ERROR(EndStep(step));
    step.block->Deliver(data.outputs);
    return step.result;
  }
  const int actions = static_cast<int>(list(kind).plan.actions.size());
  for (int i = 0; i < actions && !step.result.stopped; ++i) RETURN_IF_ERROR(RunAction(i, step));
  if (versions && !step.result.stopped) newest_slot_ = step.written_version_slot;
  // A stopped step stops before its updates, after all messages: every rank finds the same numbers.
  RETURN_IF_ERROR(AwaitRest(kind));
  if (step.block != nullptr) step.block->Deliver(data.outputs);
  return step.result;
}

// Where steps overlap each has a place of its own; the step that had it before has ended.
absl::Status Executor::Place(Running& step) {
  if (lagging_ == nullptr) {
    step.placed_scalars = step.scalars.data();
    step.placed = step.data;
    return absl::OkStatus();
  }
  StepBlock& block = *blocks_[step.moment.step % blocks_.size()];
  step.block = &block;
  step.placed_scalars = block.scalars();
  step.placed.inputs = block.inputs();
  if (!step.data.outputs.empty()) step.placed.outputs = block.outputs();
  return AnnotateStep(step.moment, block.Send(device_, step.scalars, step.data.inputs, *copies_, *stream_));
}

absl::Status Executor::RunRounds(int64_t begin, StepSource& source) {
  if (lagging_ != nullptr && !plan_.asynchronous()) return RunBehind(begin, source);
  if (plan_.validates_late()) return RunLate(begin, source);
  const auto& actions = plan_.train();
  const int delay = static_cast<int>(plan_.weight_delay());
  version_slots_[begin % (delay + 1)] = newest_slot_;
  trace_.clear();
  round_starts_.fill(0);
  int64_t end = std::numeric_limits<int64_t>::max();
  for (int64_t round = begin; end == std::numeric_limits<int64_t>::max() || round < end + largest_lag_; ++round) {
    if (options_.trace) KeepLastRounds();
    if (options_.profile && steps_run_++ == 1) ForgetTimes();
    if (round < end && !source.Admit(round)) end = round;
    if (round < end) running_[round % steps_at_once()] = {{StepKind::kTrain, -1, round}};
    for (int i = 0; i < actions.size(); ++i) {
      const int64_t number = round - actions[i].lag();
      // What was posted for the steps before has still to come: a message over several stages is received rounds before
      // it is read, the next one's receive waits for it, and its reader counts on that.
      if (number < begin || number >= end) {
        RETURN_IF_ERROR(AwaitAll(StepKind::kTrain, list(StepKind::kTrain).plan.actions[i].waits, i));
        continue;
      }
      Running& step = running_[number % steps_at_once()];
      if (!step.begun && actions[i].program() >= 0) {
        step.begun = true;
        RETURN_IF_ERROR(source.Begin(number, &step.scalars, &step.data));
        RETURN_IF_ERROR(Place(step));
      }
      if (actions[i].kind() == plan::UPDATE) {
        RETURN_IF_ERROR(RunUpdate(i, step));
      } else {
        const int slot = version_slots_[std::max(begin, number - delay) % (delay + 1)];
        step.moment.version_slot = step.written_version_slot = slot;
        RETURN_IF_ERROR(RunAction(i, step));
      }
      if (i != last_action_) continue;
      RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
      RETURN_IF_ERROR(source.End(number, step.result));
      // Scalars of steps that have begun may be other ones now.
      for (int64_t later = number + 1; lagging_ != nullptr && later <= std::min(round, end - 1); ++later) {
        Running& begun = running_[later % steps_at_once()];
        if (begun.begun) RETURN_IF_ERROR(begun.block->SendScalars(device_, begun.scalars, *stream_));
      }
    }
  }
  newest_slot_ = version_slots_[end % (delay + 1)];
  return AwaitRest(StepKind::kTrain);
}

void Executor::KeepLastRounds() {
  const size_t before = round_starts_[kTracedRounds - 1];
  trace_.erase(trace_.begin(), trace_.begin() + before);
  std::rotate(round_starts_.begin(), round_starts_.end() - 1, round_starts_.end());
  round_starts_[0] = trace_.size();
  for (size_t k = 1; k < kTracedRounds; ++k) round_starts_[k] -= std::min(before, round_starts_[k]);
}

// The next version goes into the next slot: that of the oldest one, which nobody needs any more. A step that is stopped
// makes no version of its own: the next step's is the same.
absl::Status Executor::RunUpdate(int index, Running& step) {
  const int slots = static_cast<int>(version_slots_.size());
  const int64_t version = step.moment.step;
  int& next = version_slots_[(version + 1) % slots];
  step.moment.version_slot = version_slots_[version % slots];
  step.written_version_slot = (step.moment.version_slot + 1) % slots;
  if (!step.result.stopped) RETURN_IF_ERROR(RunAction(index, step));
  next = step.result.stopped ? step.moment.version_slot : step.written_version_slot;
  return absl::OkStatus();
}

absl::Status Executor::RunAction(int index, Running& step) {
  const StepKind kind = step.moment.kind;
  const ActionPlan& row = list(kind).plan.actions[index];
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  step_ = step.moment.step;
  Moment moment = step.moment;
  moment.microbatch = action.microbatch();
  RETURN_IF_ERROR(AwaitAll(kind, row.waits, index));
  const bool timed = options_.trace || options_.profile;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  in_instructions_ = 0;
  absl::Status status = RunParts(index, moment, step);
  if (status.ok() && timed && lagging_ != nullptr) status = stream_->Synchronize(absl::Now() + options_.timeout);
  if (!status.ok()) return Annotate(kind, index, status);
  const Clock::time_point end = timed ? Clock::now() : Clock::time_point();
  if (options_.trace) trace_.push_back({index, -1, step_, false, begin, end});
  if (options_.profile && action.program() >= 0 && action.microbatch() >= 0)
    beside_instructions_.Add(Seconds(end - begin) - in_instructions_);
  // The norms of a step that is validated late are awaited there.
  if (EndsWithItsAction(plan_, action) && !(late_.running && action.kind() == plan::NORM))
    RETURN_IF_ERROR(AwaitAll(kind, row.exchanges, index));
  return absl::OkStatus();
}

absl::Status Executor::RunParts(int index, const Moment& moment, Running& step) {
  const ActionPlan& row = list(moment.kind).plan.actions[index];
  const int m = std::max(moment.microbatch, 0);
  for (int port : row.feeds) {
    const plan::Port& input = plan_.inputs(port);
    RETURN_IF_ERROR(AnnotatePort(
        "input", input,
        device_.Copy(*stream_, Address(input.tensor(), moment), step.placed.inputs[port * plan_.microbatches() + m],
                     TypeOf(plan_.tensors(input.tensor())).bytes())));
  }
  if (ActionsOf(plan_, moment.kind)[index].program() >= 0) RETURN_IF_ERROR(RunProgram(index, moment, step));
  for (int exchange : row.exchanges) RETURN_IF_ERROR(Start(exchange, moment));
  if (step.placed.outputs.empty()) return absl::OkStatus();
  for (int port : row.deliveries) {
    std::byte* to = step.placed.outputs[port * plan_.microbatches() + m];
    const plan::Port& output = plan_.outputs(port);
    if (to == nullptr) continue;
    RETURN_IF_ERROR(AnnotatePort("output", output,
                                 device_.CopyToHost(*stream_, to, Address(output.tensor(), moment),
                                                    TypeOf(plan_.tensors(output.tensor())).bytes())));
  }
  return absl::OkStatus();
}

absl::Status Executor::RunProgram(int index, const Moment& moment, Running& step) {
  if (options_.check_finite || options_.profile) return RunInstrumented(index, moment, step);
  const plan::Action& action = ActionsOf(plan_, moment.kind)[index];
  PreparedProgram& program = programs_[action.program()];
  void* const* addresses = program.Addresses(plan_, moment, step.written_version_slot);
  const StepScalars* const scalars = step.placed_scalars + std::max(moment.microbatch, 0);
  const bool starts = step.scalars[std::max(moment.microbatch, 0)].microbatch == 0;
  const bool training = moment.kind == StepKind::kTrain;
  const PreparedInstruction* first = program.instructions().data();
  const int count = static_cast<int>(program.instructions().size());
  for (int i = 0; i < count; ++i) {
    const PreparedInstruction& instruction = first[i];
    if (training && instruction.eval_only) continue;
    if (instruction.once_a_step && moment.microbatch > 0) continue;
    if (late_.running && instruction.guards) continue;  // RunScale
    void* const* operands = addresses + instruction.first_operand;
    absl::Status status = instruction.kernel->Launch(
        *stream_, KernelArguments{operands, operands + instruction.inputs, scalars, workspace_, starts});
    const bool guards = training && instruction.guards;
    if (status.ok() && guards)
      status = runs_behind_ ? CloseGate(moment) : CheckGuard(action.program(), i, &step.result);
    if (!status.ok()) return AnnotateNode(action.program(), i, status);
    if (guards && step.result.stopped) break;
  }
  return absl::OkStatus();
}

absl::Status Executor::RunInstrumented(int index, const Moment& moment, Running& step) {
  const StepKind kind = moment.kind;
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  PreparedProgram& program = programs_[action.program()];
  void* const* addresses = program.Addresses(plan_, moment, step.written_version_slot);
  const StepScalars* const scalars = step.placed_scalars + std::max(moment.microbatch, 0);
  const bool starts = step.scalars[std::max(moment.microbatch, 0)].microbatch == 0;
  StepResult* const result = &step.result;
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
      const bool sums = !starts || action.microbatch() < 0;
      ASSIGN_OR_RETURN(bad_before, HasNonFinite(planned.inputs(), operands, sums, &nan_before));
    }
    RETURN_IF_ERROR(stream_->Synchronize(absl::Now() + options_.timeout));
    const Clock::time_point begin = Clock::now();
    absl::Status status = instruction.kernel->Launch(
        *stream_, KernelArguments{operands, operands + instruction.inputs, scalars, workspace_, starts});
    if (status.ok()) status = stream_->Synchronize(absl::Now() + options_.timeout);
    if (!status.ok()) return AnnotateNode(action.program(), i, status);
    const double seconds = Seconds(Clock::now() - begin);
    in_instructions_ += seconds;
    measured_[action.program()][i].Add(seconds);
    if (look) {
      bool nan_after = false;
      ASSIGN_OR_RETURN(const bool bad_after,
                       HasNonFinite(planned.outputs(), operands + instruction.inputs, /*sums=*/true, &nan_after));
      // A mask of -infinity is no fault: the op that only passes infinity on is not the origin.
      const bool origin = bad_after && (!bad_before || (nan_after && !nan_before));
      if (origin || (bad_after && !result->first.found)) {
        const int stage = static_cast<int>(plan_.programs(action.program()).stage());
        result->first = {true,
                         origin,
                         index,
                         stage,
                         action.microbatch(),
                         action.kind(),
                         planned.name(),
                         planned.op(),
                         plan_.replicas() > 1 ? options_.replica : -1};
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
    double value = 0;
    RETURN_IF_ERROR(ReadBack(tensor, absl::MakeSpan(reinterpret_cast<std::byte*>(&value), sizeof value)));
    (tensor == plan_.loss() ? result->loss : result->gradient_norm) = value;
    if (!std::isfinite(value)) result->stopped = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Executor::HasNonFinite(const google::protobuf::RepeatedField<int32_t>& tensors,
                                            void* const* addresses, bool sums, bool* nan) {
  bool any = false;
  for (int i = 0; i < tensors.size(); ++i) {
    if (tensors[i] < 0) continue;
    if (!sums && plan_.buffers(plan_.tensors(tensors[i]).buffer()).kind() == plan::GRADIENT) continue;
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

absl::Status Executor::Start(int exchange, const Moment& moment) {
  List& list = this->list(moment.kind);
  const Exchange& planned = list.plan.exchanges[exchange];
  if (options_.profile) list.times[exchange].posted = Clock::now();
  list.under_way[exchange] = true;
  if (planned.message < 0) {
    const plan::Action& action = ActionsOf(plan_, moment.kind)[planned.action];
    std::vector<Summand>& summands = list.summands[exchange];
    for (int i = 0; i < action.sums_size(); ++i) summands[i].data = Address(action.sums(i), moment);
    return transport_.AddUp(*stream_, action.stage(), summands, *list.events[exchange]);
  }
  const plan::Message& message = plan_.messages(planned.message);
  const int peer = static_cast<int>(message.peer_rank()) + options_.replica * static_cast<int>(plan_.ranks());
  std::vector<Piece>& pieces = list.pieces[exchange];
  for (int i = 0; i < message.tensors_size(); ++i) pieces[i].data = Address(message.tensors(i), moment);
  return message.sends()
             ? transport_.Send(*stream_, peer, list.tags[exchange], pieces, *list.events[exchange])
             : transport_.Receive(*stream_, peer, list.tags[exchange], pieces, *list.events[exchange]);
}

absl::Status Executor::AwaitAll(StepKind kind, absl::Span<const int> exchanges, int action) {
  for (int exchange : exchanges) {
    if (list(kind).under_way[exchange]) RETURN_IF_ERROR(Await(kind, exchange, action));
  }
  return absl::OkStatus();
}

absl::Status Executor::AwaitExchanges(StepKind kind) {
  const int exchanges = static_cast<int>(list(kind).plan.exchanges.size());
  const int last = static_cast<int>(list(kind).plan.actions.size()) - 1;
  for (int exchange = 0; exchange < exchanges; ++exchange) RETURN_IF_ERROR(AwaitAll(kind, {exchange}, last));
  return absl::OkStatus();
}

absl::Status Executor::AwaitRest(StepKind kind) {
  RETURN_IF_ERROR(AwaitExchanges(kind));
  return AnnotateStep({kind, -1, step_}, stream_->Synchronize(absl::Now() + options_.timeout));
}

absl::Status Executor::Await(StepKind kind, int exchange, int action) {
  List& list = this->list(kind);
  const int awaited = list.plan.exchanges[exchange].action;
  list.under_way[exchange] = false;
  const bool timed = options_.trace || options_.profile;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  absl::Status status = stream_->Wait(*list.events[exchange], absl::Now() + options_.timeout);
  if (timed && lagging_ != nullptr && status.ok()) status = stream_->Synchronize(absl::Now() + options_.timeout);
  const Clock::time_point end = timed ? Clock::now() : Clock::time_point();
  if (options_.trace) trace_.push_back({action, awaited, step_, false, begin, end});
  if (options_.profile) {
    list.times[exchange].awaited = begin;
    list.times[exchange].done = end;
  }
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? status : Annotate(kind, awaited, status);
  return Annotate(
      kind, awaited,
      absl::DeadlineExceededError(absl::StrCat("waited ", absl::FormatDuration(options_.timeout), " for ",
                                               Awaited(kind, exchange), " (--timeout)")));
}

absl::Status Executor::ReadBack(int tensor, absl::Span<std::byte> to) {
  RETURN_IF_ERROR(device_.CopyToHost(*stream_, to.data(),
                                     Address(tensor, {StepKind::kEval, -1, 0, newest_slot_}), to.size()));
  return stream_->Synchronize(absl::Now() + options_.timeout);
}

absl::Status Executor::Read(int tensor, absl::Span<std::byte> to) {
  const absl::Status status = ReadBack(tensor, to);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(OwnName(), ", reading '", plan_.tensors(tensor).name(),
                                                  "': ", status.message()));
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
