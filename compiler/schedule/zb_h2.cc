// ZB-H2 (Qi et al., Zero Bubble Pipeline Parallelism, 2401.10241): 2(P-1-r)+1 forwards before the first I, so that no
// rank waits inside its own span, for at most 2P activations, kept until W; W fills what waits there are. P = 3, M = 6:
//
//   rank 0  F0 F1 F2 F3 F4 I0 F5 I1 W0 I2 W1 I3 W2 I4 W3 I5 W4 W5
//   rank 1  .. F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 W0 I4 W1 I5 W2 W3 W4 W5
//   rank 2  .. .. F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 W0 W1 W2 W3 W4 W5
//
// The order is that of list scheduling with all times equal: I where it can be done, else F, else W.
#include <algorithm>
#include <optional>

#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// How many microbatches a rank has done.
struct Done {
  int f = 0, i = 0, w = 0;
};

std::optional<ActionKind> Choose(const ScheduleShape& shape, const std::vector<Done>& done, int r) {
  const int P = shape.ranks, M = shape.microbatches;
  const Done& own = done[r];
  const bool warm = own.f >= std::min(2 * (P - 1 - r) + 1, M);
  if (warm && own.i < own.f && (r == P - 1 || own.i < done[r + 1].i)) return ActionKind::kI;
  if (own.f < M && (r == 0 || own.f < done[r - 1].f) && own.f - own.w < 2 * P) return ActionKind::kF;
  if (own.w < own.i) return ActionKind::kW;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Schedule> GenerateZbH2(const ScheduleShape& shape) {
  RETURN_IF_ERROR(NeedsOneStageARank("zb-h2", shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("zb-h2", shape, Placement::kLoop));
  std::vector<Done> done(shape.ranks);
  bool over = false;
  while (!over) {
    const std::vector<Done> before = done;
    over = true;
    for (int r = 0; r < shape.ranks; ++r) {
      over &= before[r].w == shape.microbatches;
      const std::optional<ActionKind> kind = Choose(shape, before, r);
      if (!kind) continue;
      int& count = *kind == ActionKind::kF ? done[r].f : *kind == ActionKind::kI ? done[r].i : done[r].w;
      schedule.ranks[r].push_back({*kind, r, count++});
    }
  }
  return schedule;
}

}  // namespace pipec
