// The fastest cut where devices or links differ.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "compiler/partition/problem.h"
#include "passes/stage_items.h"

namespace pipec {

// A cut of `items.problem`, within its memory limits, whose slowest rank (rank_loads.h) is as fast as is found. The
// partitioner knows one speed a device and one link. So where devices or links differ it solves several times, with all
// links as fast as the fastest or as slow as the slowest, and each time with the speeds at which the cut before
// takes what it really takes; the best is then improved (cut_in_order.h in the order of each of these cuts and of
// the items, move_boundaries.h). `bottleneck` is what it really takes, and no cut really beats `lower_bound`, which
// knows no memory limit where devices or links differ. Errors: those of `solve`.
absl::StatusOr<PartitionSolution> SolveForCluster(
    const StageItems& items, const Cluster& cluster,
    absl::FunctionRef<absl::StatusOr<PartitionSolution>(const PartitionProblem&)> solve);

}  // namespace pipec
