// Forward only: microbatch m at stage s at tick m+s, so that no stage runs ahead of the next by more than the
// two messages that a link can hold. P = 4, M = 4:
//
//   rank 0  F0 F1 F2 F3
//   rank 1  .. F0 F1 F2 F3
//   rank 2  .. .. F0 F1 F2 F3
//   rank 3  .. .. .. F0 F1 F2 F3
//
// A rank with several stages does what falls into one tick in the order of its stages, last first: the
// microbatch that came first goes first.
#include <algorithm>

#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {

Schedule ForwardOnly(const ScheduleShape& shape, std::vector<int> rank_of_stage) {
  Schedule schedule{"infer", shape, std::move(rank_of_stage), std::vector<std::vector<Action>>(shape.ranks)};
  for (int tick = 0; tick < shape.microbatches + shape.stages() - 1; ++tick) {
    for (int s = shape.stages() - 1; s >= 0; --s) {
      const int m = tick - s;
      if (m >= 0 && m < shape.microbatches)
        schedule.ranks[schedule.rank_of_stage[s]].push_back({ActionKind::kF, s, m});
    }
  }
  return schedule;
}

absl::StatusOr<Schedule> GenerateInfer(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(const Schedule empty, EmptySchedule("infer", shape, Placement::kLoop));
  return ForwardOnly(shape, empty.rank_of_stage);
}

}  // namespace pipec
