// The F, I and W of all microbatches, numbered, with what connects them: the form in which the solvers of this folder
// handle a problem millions of times.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/schedule/search/problem.h"

namespace pipec {

enum TaskRow : int { kRowF, kRowI, kRowW };

struct Tasks {
  explicit Tasks(const ScheduleProblem& problem);

  // Something that goes from one stage to another when an F (forward) or an I (backward) ends.
  struct Arc {
    int from_stage, to_stage;
    int to_rank;
    int channel;     // of this direction between the two ranks; -1: both stages are on one rank
    double seconds;  // 0 on one rank
    int arrivals;    // index of the arrival time of microbatch 0
  };
  struct Stage {
    int rank;
    double seconds[3];               // by row
    int64_t bytes[3];                // by row: the change of what the rank keeps
    std::vector<int> in[2], out[2];  // arcs, of F and of I
  };

  int Index(int stage, int row, int microbatch) const {
    return (stage * 3 + row) * microbatches + microbatch;
  }
  int StageOf(int task) const { return task / (3 * microbatches); }
  int RowOf(int task) const { return task / microbatches % 3; }
  int MicrobatchOf(int task) const { return task % microbatches; }
  int size() const { return static_cast<int>(stages.size()) * 3 * microbatches; }

  int ranks, microbatches;
  std::vector<Stage> stages;
  std::vector<Arc> arcs;
  std::vector<std::vector<int>> stages_of_rank;
  std::vector<int64_t> limit;  // by rank
};

// By rank, its tasks in the order in which it does them. F, I and W of a stage come in microbatch order.
using TaskOrder = std::vector<std::vector<int>>;

// B of a schedule is I, then W.
TaskOrder OrderOf(const Schedule& schedule, const Tasks& tasks);
Schedule ScheduleOf(const TaskOrder& order, const Tasks& tasks, const ScheduleProblem& problem);

// Whether a rank that does its tasks in this order never keeps more than its limit.
bool FitsMemory(const std::vector<int>& list, int rank, const Tasks& tasks);
bool FitsMemory(const TaskOrder& order, const Tasks& tasks);

// When things end if every task starts as early as its rank's order and what it needs allow; the same as Simulate.
class OrderTimer {
 public:
  explicit OrderTimer(const Tasks& tasks);
  // Seconds until the last task ends; infinity if the order never ends.
  double Makespan(const TaskOrder& order);
  // Seconds of the rank that has most from the start of its first task to the end of its last, and `after` that (P
  // entries); infinity if the order never ends.
  double LongestSpan(const TaskOrder& order, absl::Span<const double> after);

 private:
  // Fills first_ and now_; false if the order never ends.
  bool Run(const TaskOrder& order);

  const Tasks& tasks_;
  std::vector<double> arrival_, channel_free_;
  std::vector<double> first_, now_;  // by rank: when its first task starts; when its last so far ends
  std::vector<size_t> next_;
};

}  // namespace pipec
