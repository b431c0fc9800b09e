// PipeDream-2BW (Narayanan et al., 2006.09503): 1f1b over M microbatches a step that goes on with the next step while
// the last is still on its way back. Weights come in two versions: step t uses the one that the update of step t-2
// made, forward and backward, on every rank. P = 3, M = 4, B twice as long as F, step 1 in capitals with a stroke:
//
//   rank 0  F0 F1 F2 .. .. .. .. B0--- F3 B1--- F'0 B2--- F'1 B3--- F'2 B'0--
//   rank 1  .. F0 F1 .. .. B0--- F2 B1--- F3 B2--- F'0 B3--- F'1 B'0-- F'2
//   rank 2  .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3--- F'0 B'0-- F'1 B'1--
//
// Here: a round is M times an F and the B of the microbatch P-1-r before, which may be one of the step before.
#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GeneratePipedream2bw(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("pipedream-2bw", shape, Placement::kLoop));
  RETURN_IF_ERROR(NeedsOneStageARank(schedule.name, shape));
  const int M = shape.microbatches;
  if (M < shape.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule pipedream-2bw keeps two versions of the weights, which is enough for --microbatches of ",
                     shape.ranks, " (--stages) or more, got ", M, "; --microbatches=", shape.ranks, " works"));
  }
  schedule.weight_delay.assign(shape.ranks, 1);
  for (int r = 0; r < shape.ranks; ++r) {
    for (int m = 0; m < M; ++m) {
      const int back = m - (shape.ranks - 1 - r);
      schedule.ranks[r].push_back({.kind = ActionKind::kF, .stage = r, .microbatch = m});
      schedule.ranks[r].push_back({.kind = ActionKind::kB,
                                   .stage = r,
                                   .microbatch = back < 0 ? back + M : back,
                                   .lag = back < 0 ? 1 : 0});
    }
  }
  return schedule;
}

}  // namespace pipec
