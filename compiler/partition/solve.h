// Exact solver on the fixed order of the items.
#pragma once

#include "absl/types/span.h"
#include "compiler/partition/problem.h"

namespace pipec {

// The smallest bottleneck over all ways to cut the items, in their order, into exactly S non-empty stages
// that fit the memory limit; among equal bottlenecks the smallest sum of squared stage loads. A stage's load
// is its compute and each tensor that it sends or receives, once. A device that holds one stage: exact.
// Several stages: exact if the best cut that ignores their sum fits; otherwise the best of the cuts that also
// cap each single stage at the least cap that any cut needs, times 1 to 3. Errors: InvalidArgument for a
// problem that is none; OutOfRange with "at most N" if there are fewer places to cut than S needs;
// ResourceExhausted with the least memory limit that would do (for several stages a device: the least that
// this solver finds) if no cut fits. Time: the segments that can be part of a cut within the bottleneck,
// times the logarithm of their number: with many more items than stages, of which none is slow, near linear
// in the items.
absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem);

// The most stages this problem can be cut into.
int MaxStages(const PartitionProblem& problem);

// Independent of the solver: refuses a solution that is not a partition or whose bottleneck is not what its
// cut costs.
absl::Status CheckPartition(const PartitionProblem& problem, const PartitionSolution& solution);

// Seconds of each stage of a cut, messages counted at both ends.
std::vector<double> StageLoads(const PartitionProblem& problem, absl::Span<const int> first_item);

}  // namespace pipec
