// Where devices or links differ: a cut that fits because the right nodes run again.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"
#include "passes/recompute_stages.h"
#include "passes/stage_items.h"

namespace pipec {

// How much running nodes again frees is a guess in `within` (Recomputable), which knows the memory limits. Cuts
// that it takes for somewhat too large are tried too, and `stage_of`, by item, becomes the one of which the planner
// says that it fits and whose slowest rank, what really runs again counted, is the fastest. Stays as it is where
// nothing differs.
void CutToFit(const StageItems& items, const StageItems& within, const Cluster& cluster,
              const RecomputePlanner& planner, std::vector<int>& stage_of);

}  // namespace pipec
