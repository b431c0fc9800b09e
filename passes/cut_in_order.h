// The exact cut of one order of items where devices or links differ.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"
#include "passes/stage_items.h"

namespace pipec {

// Cuts anew, in the order of the stages of a cut that is given and within a stage in that of the items, where each rank has
// one stage: so that the slowest rank is as fast as can be, if every message goes to or comes from the neighbour; by dynamic
// programming over places and stages that can be part of a cut faster than the given one. `stage_of`, by item of
// `items.problem`, stays as it is if nothing faster is found (RankSeconds) or ranks have several stages. Memory does not count.
void CutInOrder(const StageItems& items, const Cluster& cluster, std::vector<int>& stage_of);

}  // namespace pipec
