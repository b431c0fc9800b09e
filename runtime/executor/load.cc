// Executor::Create: everything that happens before step one.
#include "runtime/plan/load.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/instruction.h"

namespace pipec {
namespace {

// Every way that a message of the plan goes.
std::vector<Route> Routes(const plan::RankPlan& rank_plan, int replica) {
  std::vector<Route> routes;
  const int first = replica * static_cast<int>(rank_plan.ranks());
  for (const plan::Message& message : rank_plan.messages()) {
    const Route route{first + static_cast<int>(message.peer_rank()), message.sends()};
    if (std::find(routes.begin(), routes.end(), route) == routes.end()) routes.push_back(route);
  }
  return routes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(plan::RankPlan rank_plan,
                                                           const std::string& plan_directory, Device& device,
                                                           Transport& transport,
                                                           const ExecutorOptions& options) {
  std::unique_ptr<Executor> executor(new Executor(std::move(rank_plan), device, transport, options));
  absl::Status status = executor->Load(plan_directory);
  if (!status.ok()) {
    // What has been enqueued goes to memory that is given back next.
    if (executor->stream_ != nullptr) executor->stream_->Synchronize(absl::Now() + options.timeout).IgnoreError();
    return absl::Status(status.code(), absl::StrCat(executor->OwnName(), ": ", status.message()));
  }
  return executor;
}

absl::Status Executor::Load(const std::string& plan_directory) {
  ASSIGN_OR_RETURN(stream_, device_.NewStream());
  // At least one byte, so that even an empty arena has an address.
  ASSIGN_OR_RETURN(arena_, device_.Allocate(std::max<int64_t>(plan_.arena_bytes(), 1)));
  std::vector<const std::byte*> constants(plan_.tensors_size(), nullptr);
  for (const plan::Constant& constant : plan_.constants()) {
    constants[constant.tensor()] = reinterpret_cast<const std::byte*>(constant.data().data());
    RETURN_IF_ERROR(device_.CopyToDevice(*stream_, Address(constant.tensor(), {StepKind::kEval}),
                                         constant.data().data(), constant.data().size()));
  }
  RETURN_IF_ERROR(LoadParameters(plan_directory));
  size_t slices = 0;
  for (const plan::Program& program : plan_.programs()) {
    ASSIGN_OR_RETURN(PreparedProgram prepared,
                     PreparedProgram::Prepare(plan_, program, constants, arena_, device_));
    workspace_bytes_ = std::max(workspace_bytes_, prepared.workspace_bytes());
    measured_.emplace_back(program.instructions_size());
    programs_.push_back(std::move(prepared));
  }
  // Their contents lie in the arena now.
  google::protobuf::RepeatedPtrField<plan::Constant>().Swap(plan_.mutable_constants());
  for (const plan::Action& action : plan_.train())
    largest_lag_ = std::max(largest_lag_, static_cast<int>(action.lag()));
  if (lagging_ != nullptr) RETURN_IF_ERROR(PrepareBehind());
  if (const uint64_t limit = plan_.memory_limit(); limit > 0 && plan_.arena_bytes() + workspace_bytes() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat(plan_.arena_bytes(), " bytes of arena and ", workspace_bytes(),
                     " of workspace for kernels and steps are above the ", limit,
                     " bytes of the device that the plan is for; with fewer --threads kernels want less, or "
                     "compile with more "
                     "--memory"));
  }
  ASSIGN_OR_RETURN(workspace_, device_.Allocate(std::max<int64_t>(workspace_bytes_, 1)));
  for (StepKind kind : {StepKind::kTrain, StepKind::kEval}) {
    RETURN_IF_ERROR(PrepareList(kind));
    slices = std::max(slices, list(kind).plan.actions.size() + 2 * list(kind).plan.exchanges.size());
  }
  if (options_.trace) trace_.reserve(slices * (plan_.asynchronous() || plan_.validates_late() ? kTracedRounds : 1));
  for (int i = 0; i < plan_.train_size(); ++i) {
    if (static_cast<int>(plan_.train(i).lag()) == largest_lag_) last_action_ = i;
  }
  if (plan_.validates_late()) RETURN_IF_ERROR(PrepareLate());
  running_.resize(steps_at_once());
  version_slots_.assign(plan_.weight_delay() + 1, 0);
  RETURN_IF_ERROR(transport_.Start(Routes(plan_, options_.replica)));
  return stream_->Synchronize(absl::Now() + options_.timeout);
}

absl::Status Executor::LoadParameters(const std::string& plan_directory) {
  FileSequence files;
  std::vector<float> wide;
  for (const plan::Parameter& parameter : plan_.parameters()) {
    if (parameter.length() == 0) continue;  // the arena is zeroed
    const std::string path = PlanPath(plan_directory, parameter.file());
    ASSIGN_OR_RETURN(FileReader * file, files.Open(path));
    std::byte* to = Address(parameter.tensor(), {StepKind::kEval});
    const absl::Status status =
        file->Read(parameter.offset(), parameter.length(), [&](absl::string_view piece) -> absl::Status {
          if (parameter.dtype() != 0) {
            ToFloats(static_cast<DType>(parameter.dtype()), piece, wide);
            piece = {reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(float)};
          }
          RETURN_IF_ERROR(device_.CopyToDevice(*stream_, to, piece.data(), piece.size()));
          to += piece.size();
          // The next piece lies in the same memory; the copy must be over by then.
          return stream_->Synchronize(absl::Now() + options_.timeout);
        });
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("parameter '", parameter.name(), "': ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::PrepareList(StepKind kind) {
  List& list = this->list(kind);
  list.plan = PlanList(plan_, kind);
  list.under_way.assign(list.plan.exchanges.size(), false);
  const auto& actions = ActionsOf(plan_, kind);
  for (const Exchange& exchange : list.plan.exchanges) {
    const plan::Action& action = actions[exchange.action];
    const int microbatch = action.microbatch();
    ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device_.NewEvent());
    list.events.push_back(std::move(event));
    std::vector<Summand>& summands = list.summands.emplace_back();
    for (uint32_t tensor : action.sums()) {
      const TensorType type = TypeOf(plan_.tensors(tensor));
      summands.push_back({nullptr, type.elements(), type.dtype});
    }
    if (exchange.message < 0) {
      list.pieces.emplace_back();
      list.tags.emplace_back();
      if (options_.profile) list.times.emplace_back();
      continue;
    }
    const plan::Message& message = plan_.messages(exchange.message);
    list.tags.push_back({static_cast<int>(message.from_stage()), static_cast<int>(message.to_stage()),
                         static_cast<int>(message.kind()), microbatch});
    std::vector<Piece>& pieces = list.pieces.emplace_back();
    for (uint32_t tensor : message.tensors()) {
      pieces.push_back({nullptr, TypeOf(plan_.tensors(tensor)).bytes()});
    }
    if (!options_.profile) continue;
    MessageTime& time = list.times.emplace_back(MessageTime{list.tags.back(), message.sends()});
    for (const Piece& piece : pieces) time.bytes += piece.bytes;
  }
  return absl::OkStatus();
}

}  // namespace pipec
