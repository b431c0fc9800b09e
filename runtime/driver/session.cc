#include "runtime/driver/session.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/device/computes_nothing.h"
#include "runtime/device/lagging_device.h"
#include "runtime/plan/load.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

// Which of two findings came first in the flow of data: forward from the first stage on, then backward from
// the last.
bool Earlier(const NonFinite& a, const NonFinite& b) {
  auto key = [](const NonFinite& n) {
    const int phase = n.kind == plan::F ? 0 : n.kind == plan::UPDATE || n.kind == plan::NORM ? 2 : 1;
    return std::tuple(!n.found, !n.origin, phase, phase == 2 ? 0 : n.microbatch,
                      phase == 0 ? n.stage : -n.stage);
  };
  return key(a) < key(b);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const std::string& directory, const Manifest& manifest,
                                                       const MakeDevice& make_device,
                                                       const MakeTransport& make_transport,
                                                       const ExecutorOptions& options) {
  std::unique_ptr<Session> session(new Session(directory, manifest));
  const int ranks = manifest.ranks * manifest.replicas;
  session->executors_.resize(ranks);
  session->results_.resize(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    session->devices_.push_back(make_device(rank));
    session->transports_.push_back(make_transport(rank, *session->devices_[rank]));
  }
  session->computes_ = dynamic_cast<const ComputesNothing*>(session->devices_[0].get()) == nullptr;
  Session* s = session.get();
  session->group_ = std::make_unique<RankGroup>(
      ranks, [s](int rank, const absl::Status& status) {
        s->transports_[rank]->Abort(status);
        if (auto* device = dynamic_cast<LaggingDevice*>(s->devices_[rank].get())) device->Abort(status);
      });
  std::vector<plan::RankPlan> rank_plans(ranks);
  RETURN_IF_ERROR(session->group_->RunAll([&](int rank) -> absl::Status {
    ASSIGN_OR_RETURN(rank_plans[rank], LoadRankPlan(directory, s->manifest_, rank % manifest.ranks));
    return absl::OkStatus();
  }));
  std::vector<const plan::RankPlan*> pointers;
  for (int rank = 0; rank < manifest.ranks; ++rank) pointers.push_back(&rank_plans[rank]);
  absl::Status whole = VerifyPlan(pointers);
  if (!whole.ok()) return absl::Status(whole.code(), absl::StrCat("'", directory, "': ", whole.message()));
  RETURN_IF_ERROR(session->group_->RunAll([&](int rank) -> absl::Status {
    ExecutorOptions own = options;
    own.replica = rank / manifest.ranks;
    ASSIGN_OR_RETURN(s->executors_[rank], Executor::Create(std::move(rank_plans[rank]), directory,
                                                           *s->devices_[rank], *s->transports_[rank], own));
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(session->CollectNames());
  return session;
}

Session::~Session() { group_.reset(); }

absl::Status Session::CollectNames() {
  std::set<absl::string_view> used;
  for (const auto& executor : executors_) {
    for (const plan::Port& port : executor->rank_plan().inputs()) used.insert(port.name());
    for (const plan::Parameter& parameter : executor->rank_plan().parameters()) {
      if (!parameter.trained()) continue;
      if (parameter.index() >= static_cast<int>(trained_parameters_.size())) {
        trained_parameters_.resize(parameter.index() + 1);
      }
      trained_parameters_[parameter.index()] = parameter.name();
    }
  }
  for (const ManifestPort& port : manifest_.inputs) {
    if (used.count(port.name) == 0) continue;
    inputs_.push_back({port.name, port.type, port.batch_axis, port.bound, port.name == manifest_.labels});
    if (port.batch_axis >= 0 && port.type.shape[port.batch_axis] != manifest_.microbatch_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", directory_, "/manifest.json': input '", port.name, "' is ", ToString(port.type),
                       ", a microbatch has ", Counted(manifest_.microbatch_size, "sample", "samples")));
    }
  }
  for (const auto& executor : executors_) {
    std::vector<int>& input_of_port = input_of_port_.emplace_back();
    for (const plan::Port& port : executor->rank_plan().inputs()) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].name == port.name()) input_of_port.push_back(static_cast<int>(i));
      }
    }
    feeds_.push_back(NewFeed(static_cast<int>(feeds_.size())));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Session::Run(StepKind kind, const DataSource& data,
                                        absl::Span<const int64_t> samples,
                                        absl::Span<const StepScalars> scalars) {
  const int64_t microbatches = manifest_.microbatches;
  RETURN_IF_ERROR(group_->RunAll([&](int rank) -> absl::Status {
    const int place = kind == StepKind::kEval ? 0 : rank;
    absl::Status status =
        feeds_[rank]->Fill(data, PartOf(place, samples, microbatches * manifest_.microbatch_size));
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat(NameOf(rank), ": ", status.message()));
    ASSIGN_OR_RETURN(results_[rank],
                     executors_[rank]->Run(kind, PartOf(place, scalars, microbatches), feeds_[rank]->data()));
    return absl::OkStatus();
  }));
  StepResult all;
  for (const StepResult& result : results_) {
    all.stopped |= result.stopped;
    if (Earlier(result.first, all.first)) all.first = result.first;
  }
  return all;
}

std::string Session::NameOf(int rank) const {
  const std::string replica =
      manifest_.replicas > 1 ? absl::StrCat("replica ", rank / manifest_.ranks, ", ") : "";
  return absl::StrCat(replica, "rank ", rank % manifest_.ranks);
}

std::unique_ptr<Feed> Session::NewFeed(int rank) const {
  const plan::RankPlan& rank_plan = executors_[rank]->rank_plan();
  return std::make_unique<Feed>(rank_plan, input_of_port_[rank], !rank_plan.training());
}

absl::Status Session::RunRounds(int64_t begin, absl::Span<StepSource* const> sources) {
  return group_->RunAll([&](int rank) { return executors_[rank]->RunRounds(begin, *sources[rank]); });
}

absl::StatusOr<std::optional<double>> Session::ReadScalar(ScalarField field) {
  std::optional<double> value;
  for (int rank = 0; computes() && rank < ranks() && !value; ++rank) {
    const int32_t tensor = (executors_[rank]->rank_plan().*field)();
    if (tensor < 0) continue;
    RETURN_IF_ERROR(group_->RunOn(rank, [&](int) -> absl::Status {
      ASSIGN_OR_RETURN(value, executors_[rank]->ReadScalar(tensor));
      return absl::OkStatus();
    }));
  }
  return value;
}

absl::StatusOr<std::optional<int64_t>> Session::ReadCount(ScalarField field) {
  std::optional<int64_t> value;
  for (int rank = 0; computes() && rank < ranks() && !value; ++rank) {
    const int32_t tensor = (executors_[rank]->rank_plan().*field)();
    if (tensor < 0) continue;
    RETURN_IF_ERROR(group_->RunOn(rank, [&](int) -> absl::Status {
      ASSIGN_OR_RETURN(value, executors_[rank]->ReadCount(tensor));
      return absl::OkStatus();
    }));
  }
  return value;
}

}  // namespace pipec
