// Which forward nodes run again in front of their backward nodes, instead of their results being kept, so that the
// stages fit the devices' memory.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "compiler/partition/problem.h"
#include "compiler/schedule/schedule.h"
#include "passes/stage_items.h"

namespace pipec {

// What is kept of a microbatch, from which action of a stage to the last of its backward actions: activations from F;
// what is recomputed, from I or B.
enum class KeptFrom : uint8_t { kForward, kBackward };

// By stage, of how many microbatches when its rank keeps most, all its stages taken for equal; at least 1. Evident
// from the order of a rank's actions alone.
std::vector<int> InFlight(const Schedule& schedule, KeptFrom from);

// The problem if all stages recompute: each forward node runs twice, and of its activations only a share is kept.
// The planned memory is judged in the end.
PartitionProblem RecomputedEverywhere(const PartitionProblem& problem, const std::vector<StageTimes>& times,
                                      const Schedule& schedule);

// The problem if stages may recompute as much as their memory asks for: what need not be kept can be made again, in the
// time of the forward nodes behind what is kept before it.
PartitionProblem Recomputable(const PartitionProblem& problem, const std::vector<StageTimes>& times);

struct RecomputePlan {
  std::vector<std::vector<RecomputedSegment>> recomputed;  // by stage
  std::vector<double> seconds;                             // by stage, on its device: of what runs again, a microbatch
  bool fits = false;                                       // every rank, as its bytes are counted here
};

// Chooses for a cut, given by item. A stage's forward nodes are cut into segments (compiler/memory/segments.h), and
// each segment is kept, run again, or run again but for its products, which take most of the time. On each rank
// those choices that take least time such that parameters, activations of all microbatches in flight and the
// largest segment that runs again are within `limits` (bytes by rank); where nothing fits, and with no limits,
// everything runs again.
class RecomputePlanner {
 public:
  // All must outlive the planner.
  RecomputePlanner(const Module& module, const StageItems& items, const Schedule& schedule,
                   const Cluster& cluster);

  RecomputePlan Everything(const std::vector<int>& stage_of) const;
  RecomputePlan ToFit(const std::vector<int>& stage_of, const std::vector<int64_t>& limits) const;

 private:
  struct Segment;
  std::vector<std::vector<Segment>> Describe(const std::vector<int>& stage_of) const;

  const Module& module_;
  const StageItems& items_;
  const Schedule& schedule_;
  const Cluster& cluster_;
};

// Whether a cut fits with nothing recomputed, as the partitioner counts bytes.
bool FitsMemory(const PartitionProblem& problem, const std::vector<int>& stage_of,
                const std::vector<int64_t>& limits);

}  // namespace pipec
