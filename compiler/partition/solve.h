// What others call: the solver, the checker, and what a cut costs.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/partition/problem.h"

namespace pipec {

// How long to look for better cuts. Counted, not timed: the same problem has the same solution everywhere.
struct PartitionEffort {
  int ideals = 60000;           // solve exactly if the graph has at most so many
  int64_t pairs = 150'000'000;  // of ideals, for the exact solver to look at: about 5 ns each
  int64_t search =
      50'000'000;  // steps of the search, most of them where the exact solver gave up: about 10 ns each
};

// A cut into exactly S non-empty stages that keeps the valid order and fits the devices' memory, with the
// smallest StepTime that is found: the smallest there is if the exact solver comes to an end within the effort. Then
// lower_bound is the bottleneck, unless few microbatches count. Errors:
// InvalidArgument for a problem that is none; OutOfRange with "at most N" if there are fewer blocks than stages;
// ResourceExhausted with the least memory limit that would do (the least that is found) if no cut fits.
absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem,
                                                 const PartitionEffort& effort = {});

// The same over the cuts of the items in their order only: among equal ones the smallest sum of squared stage
// loads. A device that holds one stage: exact. Several stages: exact for a hundred items or so, without regard to
// squares; beyond, the best that is found of the cuts that cap each single stage and of those near them. Time: the
// segments that can be part of a cut within the bottleneck, times the logarithm of their number: with many more
// items than stages, of which none is slow, near linear in the items.
absl::StatusOr<PartitionSolution> SolveFixedOrder(const PartitionProblem& problem);

// The most stages this problem can be cut into.
int MaxStages(const PartitionProblem& problem);

// Independent of the solver: refuses a solution that is not a partition or whose bottleneck is not what its
// cut costs.
absl::Status CheckPartition(const PartitionProblem& problem, const PartitionSolution& solution);

// Seconds of each stage of a cut, given by item, with nothing made again; messages counted at both ends.
std::vector<double> StageLoads(const PartitionProblem& problem, absl::Span<const int> stage_of);
// Of each device: the sum of its stages, and of what it makes again to fit its memory; infinity if that
// is not enough.
std::vector<double> DeviceLoads(const PartitionProblem& problem, absl::Span<const int> stage_of);
// What the solver minimises: the slowest device, or for few microbatches the sum of all stages and
// microbatches - 1 times the slowest device.
double StepTime(const PartitionProblem& problem, absl::Span<const int> stage_of);

}  // namespace pipec
