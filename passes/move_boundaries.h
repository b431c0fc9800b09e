// The last step of a cut where devices or links differ.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"
#include "passes/stage_items.h"

namespace pipec {

// Moves items of the slowest rank's stages to the stage before or behind, what is glued at once, as long as the
// slowest rank, as RankLoads says, becomes faster. `stage_of`: by item of `items.problem`; stays a valid cut
// without empty stages. Ends after a number of steps.
void MoveBoundaries(const StageItems& items, const Cluster& cluster, std::vector<int>& stage_of);

}  // namespace pipec
