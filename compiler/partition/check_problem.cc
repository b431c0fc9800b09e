#include "compiler/partition/check_problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/partition/stage_rules.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckStages(const PartitionProblem& problem) {
  const int S = problem.stages;
  if (S < 1)
    return absl::InvalidArgumentError(absl::StrCat("cannot cut into ", S, " stages, wanted at least 1"));
  const auto right_size = [](size_t size, int wanted) {
    return size == 0 || static_cast<int>(size) == wanted;
  };
  if (!right_size(problem.in_flight.size(), S) || !right_size(problem.versions.size(), S) ||
      !right_size(problem.rank_of_stage.size(), S)) {
    return absl::InvalidArgumentError(absl::StrCat("partition into ", S, " stages: in_flight has ",
                                                   problem.in_flight.size(), ", versions ", problem.versions.size(),
                                                   " and rank_of_stage ", problem.rank_of_stage.size(), " entries"));
  }
  for (int rank : problem.rank_of_stage) {
    if (rank < 0 || rank >= S)
      return absl::InvalidArgumentError(
          absl::StrCat("partition into ", S, " stages: one lies on device ", rank));
  }
  const int ranks = Ranks(problem);
  if (!right_size(problem.speed.size(), ranks) || !right_size(problem.memory_limits.size(), ranks)) {
    return absl::InvalidArgumentError(absl::StrCat("partition over ", ranks, " devices: speed has ",
                                                   problem.speed.size(), " and memory_limits ",
                                                   problem.memory_limits.size(), " entries"));
  }
  for (double speed : problem.speed) {
    if (!(speed > 0)) return absl::InvalidArgumentError(absl::StrCat("partition: a device of speed ", speed));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProblem(const PartitionProblem& problem) {
  RETURN_IF_ERROR(CheckStages(problem));
  const int n = static_cast<int>(problem.items.size());
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const PartitionTensor& tensor = problem.tensors[t];
    int previous = tensor.producer;
    bool good = tensor.producer >= 0 && !tensor.consumers.empty();
    for (int consumer : tensor.consumers) {
      good &= consumer > previous && consumer < n;
      previous = consumer;
    }
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat("partition: consumers of tensor ", t, ", made by item ",
                                                     tensor.producer, " of ", n,
                                                     ", must ascend and come after it"));
    }
  }
  for (const auto& [before, after] : problem.order) {
    if (before < 0 || before >= after || after >= n) {
      return absl::InvalidArgumentError(
          absl::StrCat("partition: item ", after, " of ", n, " cannot be asked to come after item ", before));
    }
  }
  for (const PartitionShared& shared : problem.shared) {
    for (int item : shared.items) {
      if (item < 0 || item >= n) {
        return absl::InvalidArgumentError(
            absl::StrCat("partition: shared parameter of item ", item, " of ", n));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
