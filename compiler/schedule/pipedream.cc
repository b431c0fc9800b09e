// PipeDream (Harlap et al., 1806.03377): 1f1b that never empties. A step is one microbatch, and every backward pass is
// followed by an update. After a warm-up of P-1-r forwards rank r does one forward and one backward in turn, with the
// newest weights forward and with those that the microbatch went forward with backward, so it keeps P-r versions.
// P = 4, B twice as long as F, U the update:
//
//   rank 0  F0 F1 F2 F3 .. .. .. .. .. .. B0---U F4 B1---U F5 B2---U F6
//   rank 1  .. F0 F1 F2 .. .. .. .. B0---U F3 B1---U F4 B2---U F5
//   rank 2  .. .. F0 F1 .. .. B0---U F2 B1---U F3 B2---U F4
//   rank 3  .. .. .. F0 B0---U F1 B1---U F2 B2---U F3
//
// Here: a round is an F, and the B of the step P-1-r before.
#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GeneratePipedream(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("pipedream", shape, Placement::kLoop));
  RETURN_IF_ERROR(NeedsOneStageARank(schedule.name, shape));
  if (shape.microbatches != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule pipedream updates after every microbatch, so a step is one, got --microbatches=",
                     shape.microbatches, "; --microbatches=1 works; pipedream-2bw takes P or more"));
  }
  for (int r = 0; r < shape.ranks; ++r) {
    const int delay = shape.ranks - 1 - r;
    schedule.weight_delay.push_back(delay);
    schedule.ranks[r] = {{.kind = ActionKind::kF, .stage = r, .microbatch = 0},
                         {.kind = ActionKind::kB, .stage = r, .microbatch = 0, .lag = delay}};
  }
  return schedule;
}

}  // namespace pipec
