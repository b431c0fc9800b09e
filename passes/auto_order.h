// --schedule=auto, once the schedules with a name were tried: orders that a search finds (compiler/schedule/search).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "passes/plan_maker.h"
#include "passes/plan_trials.h"

namespace pipec {

// Schedules of one number of ranks and microbatches, by stages a rank and rank of each stage.
using Placements = std::map<std::pair<int, std::vector<int>>, std::vector<Schedule>>;

// For every way to place the stages, the best order of F, I and W apart that fits the memory, where one is found
// that ends before `best_seconds` and can be among the two best, is tried. Returns what no order of stages so cut
// and placed can beat, in seconds; 0: not known.
double TryFoundOrders(const Placements& placements, double best_seconds, PlanMaker& maker,
                      PlanTrials& trials);

}  // namespace pipec
