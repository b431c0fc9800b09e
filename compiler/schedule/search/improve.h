// The parts of FindBestSchedule: each takes the best order so far and leaves a better one there if it finds one.
// All are functions of their arguments: they stop after a number of tries, not after a time.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "compiler/schedule/search/tasks.h"

namespace pipec {

struct BestOrder {
  TaskOrder order;
  double makespan = std::numeric_limits<double>::infinity();
  double bound = 0;  // MakespanBound

  // Whether nothing is left to gain.
  bool IsBest() const { return makespan <= bound * (1 + 1e-9); }
  void Offer(double other, const TaskOrder& other_order) {
    if (other < makespan) makespan = other, order = other_order;
  }
};

// List scheduling with preferences from a grid, the best few of which are then changed at random as long as that helps.
void TunePriorities(const Tasks& tasks, int tries, BestOrder& best);

// Moves tasks within the lists of their ranks (simulated annealing at a low temperature). `seconds`: of an order, what
// is to become less; BestOrder's makespan and bound are of that here.
void AnnealOrder(const Tasks& tasks, int tries, absl::FunctionRef<double(const TaskOrder&)> seconds,
                 BestOrder& best);

// All orders, but for those that cannot be better: depth first over active schedules (Giffler and Thompson, 1960).
// True if they were looked at within so many steps, that is, if `best` is the best there is.
bool BranchAndBound(const Tasks& tasks, int64_t steps, BestOrder& best);

}  // namespace pipec
