// What an error says of where it happened: rank, step, stage, action and microbatch, node or port.
#include "absl/strings/str_cat.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/verify.h"

namespace pipec {

std::string Executor::Awaited(StepKind kind, int exchange) const {
  const int index = lists_[kind == StepKind::kTrain ? 0 : 1].plan.exchanges[exchange].message;
  if (index < 0) return "the gradients of all replicas";
  const plan::Message& message = plan_.messages(index);
  return message.sends() ? absl::StrCat("rank ", message.peer_rank(), " to take the message")
                         : absl::StrCat("a message from rank ", message.peer_rank());
}

std::string Executor::OwnName() const {
  return absl::StrCat(plan_.replicas() > 1 ? absl::StrCat("replica ", options_.replica, ", ") : "", "rank ",
                      plan_.rank());
}

absl::Status Executor::Annotate(StepKind kind, int index, const absl::Status& status) const {
  const plan::Action& action = ActionsOf(plan_, kind)[index];
  std::string where = OwnName();
  if (action.stage() >= 0) absl::StrAppend(&where, ", stage ", action.stage());
  absl::StrAppend(&where, ", action ", ActionName(plan_, action));
  if (action.microbatch() >= 0) absl::StrAppend(&where, ", microbatch ", action.microbatch());
  return absl::Status(status.code(), absl::StrCat(where, StepName(kind, step_), ": ", status.message()));
}

std::string Executor::StepName(StepKind kind, int64_t step) const {
  if (!plan_.training()) return "";
  const bool trains = kind == StepKind::kTrain;
  return absl::StrCat(trains ? ", step " : ", evaluation after step ", step + trains);
}

absl::Status Executor::AnnotateStep(const Moment& moment, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(OwnName(), StepName(moment.kind, moment.step), ": ", status.message()));
}

absl::Status Executor::AnnotatePort(absl::string_view what, const plan::Port& port, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, " '", port.name(), "': ", status.message()));
}

absl::Status Executor::AnnotateNode(int program, int instruction, const absl::Status& status) const {
  const plan::Instruction& planned = plan_.programs(program).instructions(instruction);
  return absl::Status(status.code(),
                      absl::StrCat("node '", planned.name(), "' (", planned.op(), "): ", status.message()));
}

}  // namespace pipec
