// A plan, loaded and ready: the ranks' threads, devices, transports and executors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/data_source.h"
#include "runtime/driver/feed.h"
#include "runtime/driver/rank_group.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/manifest.h"

namespace pipec {

// How the tools hand in the concrete ones.
using MakeDevice = std::function<std::unique_ptr<Device>(int rank)>;
using MakeTransport = std::function<std::unique_ptr<Transport>(int rank, Device& device)>;

class Session {
 public:
  // Every rank reads its own file and parameters. The first failure, with its rank, is the status.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& directory, const Manifest& manifest,
                                                       const MakeDevice& make_device,
                                                       const MakeTransport& make_transport,
                                                       const ExecutorOptions& options);
  // Joins the ranks' threads before anything they use goes away.
  ~Session();

  // One step over the given samples (Feed::Fill): of all replicas, whose parts follow one another, as those of
  // `scalars` do, M for each. An evaluation has the samples and scalars of one: all do the same, and replica 0 is
  // asked, as all ranks of a GPU have a step together. The result is stopped if any rank's is; its `first` is the
  // earliest of all ranks (with check_finite).
  absl::StatusOr<StepResult> Run(StepKind kind, const DataSource& data, absl::Span<const int64_t> samples,
                                 absl::Span<const StepScalars> scalars);

  // Training where steps overlap, from an empty pipeline to an empty one: Executor::RunRounds of every rank, with a
  // source each.
  absl::Status RunRounds(int64_t begin, absl::Span<StepSource* const> sources);
  bool asynchronous() const { return executors_[0]->rank_plan().asynchronous(); }
  // Executor's.
  bool may_begin_again() const { return executors_[0]->may_begin_again(); }
  bool is_behind() const { return executors_[0]->is_behind(); }
  // Memory for the inputs of one more step of a rank.
  std::unique_ptr<Feed> NewFeed(int rank) const;

  const Manifest& manifest() const { return manifest_; }
  const std::string& directory() const { return directory_; }
  absl::string_view device_name() const { return devices_[0]->name(); }
  bool computes() const { return computes_; }
  // Of all replicas: rank r of replica k is k P + r.
  int ranks() const { return group_->size(); }
  // "rank 1", with the replica where there are several.
  std::string NameOf(int rank) const;
  // What a rank is given of something that has so many entries for each replica.
  template <typename T>
  absl::Span<const T> PartOf(int rank, absl::Span<const T> whole, int64_t of_replica) const {
    return whole.subspan(rank / manifest_.ranks * of_replica, of_replica);
  }
  Executor& executor(int rank) { return *executors_[rank]; }
  const Feed& feed(int rank) const { return *feeds_[rank]; }
  RankGroup& group() { return *group_; }

  // The inputs that the ranks use, in the manifest's order.
  const std::vector<DataInput>& inputs() const { return inputs_; }
  // Names of the trained parameters by index; "" where no rank has one.
  const std::vector<std::string>& trained_parameters() const { return trained_parameters_; }

  // A scalar named by a field of the rank plans (loss, gradient_norm, ...): read on the first rank that has
  // it; nullopt if none has, or the devices compute nothing.
  using ScalarField = int32_t (plan::RankPlan::*)() const;
  absl::StatusOr<std::optional<double>> ReadScalar(ScalarField field);
  absl::StatusOr<std::optional<int64_t>> ReadCount(ScalarField field);

 private:
  Session(std::string directory, Manifest manifest)
      : directory_(std::move(directory)), manifest_(std::move(manifest)) {}
  absl::Status CollectNames();

  std::string directory_;
  Manifest manifest_;
  bool computes_ = true;  // what the devices do (runtime/device/computes_nothing.h)
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<std::vector<int>> input_of_port_;  // by rank
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<StepResult> results_;
  std::vector<DataInput> inputs_;
  std::vector<std::string> trained_parameters_;
  std::unique_ptr<RankGroup> group_;
};

}  // namespace pipec
