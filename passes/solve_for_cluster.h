// The fastest cut where devices or links differ.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "compiler/partition/problem.h"
#include "passes/stage_items.h"

namespace pipec {

// By rank, seconds of a cut, given by item: each item on its rank's own device, each tensor at each stage that sends or
// receives it by the slowest of the links that it takes there. Where all are equal that is what DeviceLoads says.
std::vector<double> RankSeconds(const StageItems& items, const Cluster& cluster,
                                const std::vector<int>& stage_of);

// A cut of `items.problem` without its memory limits whose slowest rank is as fast as is found. The partitioner knows one
// speed a device and one link. So where devices or links differ it solves several times, with all links as fast as the
// fastest or as slow as the slowest, and each time with the speeds at which the cut before takes what it really takes; the
// best is then improved (cut_in_order.h, move_boundaries.h), and its speeds and links stay in `items.problem`.
// `bottleneck` is what it really takes, and no cut really beats `lower_bound`. Errors: those of `solve`.
absl::StatusOr<PartitionSolution> SolveForCluster(
    StageItems& items, const Cluster& cluster,
    absl::FunctionRef<absl::StatusOr<PartitionSolution>(const PartitionProblem&)> solve);

}  // namespace pipec
