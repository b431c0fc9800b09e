// List scheduling: whoever can start first does next what promises most, under a memory guard.
#pragma once

#include <vector>

#include "compiler/schedule/search/tasks.h"

namespace pipec {

// What a rank prefers. Of the tasks that it could do next it takes the one with the least start minus head start: a
// task with a head start of 2 seconds is waited for rather than begin one that could start up to 2 seconds earlier.
struct Priorities {
  std::vector<double> head_start[3];  // by row and stage, in seconds
  std::vector<float> of_task;         // added to those; empty: none
  std::vector<int> most_kept;         // by stage: microbatches between the start of F and the end of W
};

class ListScheduler {
 public:
  explicit ListScheduler(const Tasks& tasks);

  // Seconds until the last task ends; infinity if the guards leave nothing to do before the end.
  double Run(const Priorities& priorities);
  // Of the last run.
  const TaskOrder& order() const { return order_; }
  double sum_of_ends() const { return sum_of_ends_; }  // seconds at which the ranks are through, added up

 private:
  struct Choice {
    double start = 0, key = 0;
    int stage = -1, row = 0;
  };
  Choice Choose(int rank, const Priorities& priorities) const;
  double Arrival(const Tasks::Stage& stage, int row, int microbatch, double from) const;
  void Do(int rank, const Choice& choice);

  const Tasks& tasks_;
  TaskOrder order_;
  double sum_of_ends_ = 0;
  std::vector<int> done_[3];  // by row and stage: microbatches
  std::vector<int64_t> kept_;
  std::vector<double> now_, channel_free_, arrival_;
  std::vector<Choice> choice_;  // by rank
  std::vector<bool> is_old_;    // by rank: whether its choice has to be made again
};

}  // namespace pipec
