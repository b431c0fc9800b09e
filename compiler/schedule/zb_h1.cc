// ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, 2401.10241): the backward in its two halves, of which only I is
// what the rank before waits for; W fills the waits. The warm-up is that of 1f1b, so every rank keeps P
// activations, the first one until W. P = 4, M = 4:
//
//   rank 0  F0 F1 F2 F3 .. .. .. I0 W0 I1 W1 I2 W2 I3 W3
//   rank 1  .. F0 F1 F2 .. .. I0 F3 I1 W0 I2 W1 I3 W2 W3
//   rank 2  .. .. F0 F1 .. I0 F2 I1 F3 I2 W0 I3 W1 W2 W3
//   rank 3  .. .. .. F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3
//
// With V stages a rank the stages take turns as in interleaved.
#include <algorithm>

#include "compiler/schedule/generators.h"
#include "compiler/schedule/interleaved_table.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GenerateZbH1(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("zb-h1", shape, Placement::kLoop));
  ASSIGN_OR_RETURN(const InterleavedTable table, MakeInterleavedTable("zb-h1", shape));
  const int P = shape.ranks, V = shape.virtual_stages;
  const int total = static_cast<int>(table.entries.size());
  for (int r = 0; r < P; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    auto backward = [&](ActionKind kind, int k) {
      const auto [local_stage, microbatch] = table.entries[k];
      list.push_back({kind, r + (V - 1 - local_stage) * P, microbatch});
    };
    const int warm_up = std::min((V - 1) * table.group + (P - 1 - r), total);
    int weights_done = 0;
    for (int k = 0; k < total + warm_up; ++k) {
      if (k < total)
        list.push_back({ActionKind::kF, r + table.entries[k].local_stage * P, table.entries[k].microbatch});
      if (k < warm_up) continue;
      backward(ActionKind::kI, k - warm_up);
      if (k >= total || k - warm_up >= r) backward(ActionKind::kW, weights_done++);
    }
    while (weights_done < total) backward(ActionKind::kW, weights_done++);
  }
  return schedule;
}

}  // namespace pipec
