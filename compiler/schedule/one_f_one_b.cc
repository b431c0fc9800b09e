// 1F1B (Narayanan et al., PipeDream-Flush, 2006.09503): after a warm-up of P-1-r forwards, one forward and
// one backward in turn, so that rank r keeps P-r activations instead of M. P = 4, M = 4, B twice as long as
// F:
//
//   rank 0  F0 F1 F2 F3 .. .. .. .. .. .. B0--- .. B1--- .. B2--- .. B3---
//   rank 1  .. F0 F1 F2 .. .. .. .. B0--- F3 B1--- .. B2--- .. B3---
//   rank 2  .. .. F0 F1 .. .. B0--- F2 B1--- F3 B2--- .. B3---
//   rank 3  .. .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3---
//
// eager-1f1b warms up with 2(P-1-r) forwards instead: a message has one more action's time to arrive, for nearly twice
// the activations:
//
//   rank 0  F0 F1 F2 F3 .. .. .. .. .. .. B0--- .. B1--- .. B2--- .. B3---
//   rank 1  .. F0 F1 F2 F3 .. .. .. B0--- .. B1--- .. B2--- .. B3---
//   rank 2  .. .. F0 F1 F2 .. B0--- F3 B1--- B2--- .. B3---
//   rank 3  .. .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3---
#include <algorithm>

#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// `lead`: forwards that a rank is ahead of the next one when the steady phase begins.
absl::StatusOr<Schedule> OneFOneB(absl::string_view name, const ScheduleShape& shape, int lead) {
  RETURN_IF_ERROR(NeedsOneStageARank(name, shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule(name, shape, Placement::kLoop));
  const int M = shape.microbatches;
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    const int warm_up = std::min(lead * (shape.ranks - 1 - r), M);
    for (int m = 0; m < warm_up; ++m) list.push_back({ActionKind::kF, r, m});
    for (int m = warm_up; m < M; ++m) {
      list.push_back({ActionKind::kF, r, m});
      list.push_back({ActionKind::kB, r, m - warm_up});
    }
    for (int m = M - warm_up; m < M; ++m) list.push_back({ActionKind::kB, r, m});
  }
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> GenerateOneFOneB(const ScheduleShape& shape) { return OneFOneB("1f1b", shape, 1); }

absl::StatusOr<Schedule> GenerateEagerOneFOneB(const ScheduleShape& shape) {
  return OneFOneB("eager-1f1b", shape, 2);
}

}  // namespace pipec
