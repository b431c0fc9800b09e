// Which stages run their forward nodes again in front of their backward nodes, instead of keeping activations.
#pragma once

#include <vector>

#include "compiler/partition/problem.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

// What is kept of a microbatch, from which action of a stage to the last of its backward actions: activations from F;
// what is recomputed, from I or B.
enum class KeptFrom : uint8_t { kForward, kBackward };

// By stage, of how many microbatches at once. Evident from the order of a rank's actions alone.
std::vector<int> InFlight(const Schedule& schedule, KeptFrom from);

// The problem if all stages recompute: each forward node runs twice, and of its activations only a share is kept. What
// share depends on the cut and on where recompute-forward keeps values; of k equal nodes in a row 2 / sqrt(k) stay,
// which is taken here for all. The planned memory is judged in the end.
PartitionProblem RecomputedEverywhere(const PartitionProblem& problem, const std::vector<StageTimes>& times,
                                      const Schedule& schedule);

// The stages of a cut that have to recompute so that every rank fits `memory_limit` bytes, as the partitioner counts
// them: on each rank that does not fit, those that save most first, until it does or all do. `stage_of` is by
// item; `recomputed` is RecomputedEverywhere of `problem`.
std::vector<bool> StagesThatMustRecompute(const PartitionProblem& problem, const PartitionProblem& recomputed,
                                          const std::vector<int>& stage_of, int64_t memory_limit);

}  // namespace pipec
