// The exact cut of one order of items where devices or links differ.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"
#include "passes/stage_items.h"

namespace pipec {

// Cuts anew, in the order of the stages of `order`, a valid cut, and within a stage in that of the items, where
// each rank has one stage: so that the slowest rank is as fast as can be within the memory limits, if every message
// goes to or comes from the neighbour; by dynamic programming over places and stages that can be part of a cut
// faster than `stage_of`. That one, by item of `items.problem`, stays as it is if nothing faster is found
// (RankLoads) or ranks have several stages.
void CutInOrder(const StageItems& items, const Cluster& cluster, const std::vector<int>& order,
                std::vector<int>& stage_of);

}  // namespace pipec
