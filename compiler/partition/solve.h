// Exact solver on the fixed order of the items.
#pragma once

#include "absl/types/span.h"
#include "compiler/partition/problem.h"

namespace pipec {

// The smallest bottleneck over all ways to cut the items, in their order, into exactly S non-empty stages that
// fit the memory limit; among equal bottlenecks the smallest sum of squared stage loads.
// Errors: OutOfRange with "at most N" if there are fewer places to cut than S needs; ResourceExhausted with the
// least memory limit that would do if no cut fits.
absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem);

// The most stages this problem can be cut into.
int MaxStages(const PartitionProblem& problem);

// Independent of the solver: refuses a solution that is not a partition or whose bottleneck is not what its cut costs.
absl::Status CheckPartition(const PartitionProblem& problem, const PartitionSolution& solution);

// Seconds of each stage of a cut, messages counted at both ends.
std::vector<double> StageLoads(const PartitionProblem& problem, absl::Span<const int> first_item);

}  // namespace pipec
