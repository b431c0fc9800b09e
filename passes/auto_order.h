// --schedule=auto, once the schedules with a name were tried: orders that a search finds (compiler/schedule/search).
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "passes/plan_maker.h"
#include "passes/plan_trials.h"

namespace pipec {

// Schedules of one number of ranks and microbatches, by stages a rank and rank of each stage.
using Placements = std::map<std::pair<int, std::vector<int>>, std::vector<Schedule>>;

// The schedule with a name whose step is fastest; null: none fits.
struct BestNamed {
  std::shared_ptr<const Schedule> schedule;
  double step_seconds = std::numeric_limits<double>::infinity();
  double order_seconds = std::numeric_limits<double>::infinity();
};

// For every way to place the stages, cut for no schedule in particular, the best order of F, I and W apart that fits
// the memory, where one is found that ends before `best_seconds` and can be among the two best, is tried. For the
// stages of `best`, one whose step is shorter, and where these stages are others, one that ends before its own.
void TryFoundOrders(const Placements& placements, const BestNamed& best, double best_seconds,
                    PlanMaker& maker, PlanTrials& trials);

}  // namespace pipec
