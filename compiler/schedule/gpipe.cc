// GPipe (Huang et al., 1811.06965): all forwards, then all backwards. P = 4, M = 4, B twice as long as F:
//
//   rank 0  F0 F1 F2 F3 .. .. .. .. .. .. .. .. .. B0--- B1--- B2--- B3---
//   rank 1  .. F0 F1 F2 F3 .. .. .. .. .. .. B0--- B1--- B2--- B3---
//   rank 2  .. .. F0 F1 F2 F3 .. .. .. B0--- B1--- B2--- B3---
//   rank 3  .. .. .. F0 F1 F2 F3 B0--- B1--- B2--- B3---
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GenerateGpipe(const ScheduleShape& shape) {
  RETURN_IF_ERROR(NeedsOneStageARank("gpipe", shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("gpipe", shape, Placement::kLoop));
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    for (int m = 0; m < shape.microbatches; ++m) list.push_back({ActionKind::kF, r, m});
    for (int m = 0; m < shape.microbatches; ++m) list.push_back({ActionKind::kB, r, m});
  }
  return schedule;
}

}  // namespace pipec
