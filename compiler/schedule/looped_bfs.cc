// Looped breadth-first (Lamy-Poirier, 2211.05953): rank r holds stages r, r+P, ... and runs all microbatches
// through one of them before it goes on to the next, so that the bubble is V times shorter and every microbatch of
// a stage comes in one row. P = 2, V = 2 (stages 0 2 | 1 3), M = 2, B twice as long as F, microbatches of the later
// stage as ' :
//
//   rank 0  F0 F1 F0' F1' .. .. .. B0'-- B1'-- B0--- B1---
//   rank 1  .. F0 F1 F0' F1' B0'-- B1'-- B0--- B1---
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GenerateLoopedBfs(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("looped-bfs", shape, Placement::kLoop));
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    for (int c = 0; c < shape.virtual_stages; ++c) {
      for (int m = 0; m < shape.microbatches; ++m) list.push_back({ActionKind::kF, r + c * shape.ranks, m});
    }
    for (int c = shape.virtual_stages - 1; c >= 0; --c) {
      for (int m = 0; m < shape.microbatches; ++m) list.push_back({ActionKind::kB, r + c * shape.ranks, m});
    }
  }
  return schedule;
}

}  // namespace pipec
