// Interleaved 1F1B (Narayanan et al., Megatron-LM, 2104.04473): rank r holds stages r, r+P, ... and works on
// them in groups of N microbatches, which shortens the bubble V times. P = 2, V = 2 (stages 0 2 | 1 3), M =
// 4, N = 2, written <stage>F<microbatch>, in order of work, without times:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
//   rank 1  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
#include <algorithm>

#include "compiler/schedule/generators.h"
#include "compiler/schedule/interleaved_table.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Schedule> GenerateInterleaved(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("interleaved", shape, Placement::kLoop));
  ASSIGN_OR_RETURN(const InterleavedTable table, MakeInterleavedTable("interleaved", shape));
  const int P = shape.ranks, V = shape.virtual_stages;
  const int total = static_cast<int>(table.entries.size());
  for (int r = 0; r < P; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    auto forward = [&](int k) {
      const auto [local_stage, microbatch] = table.entries[k];
      list.push_back({ActionKind::kF, r + local_stage * P, microbatch});
    };
    auto backward = [&](int k) {
      const auto [local_stage, microbatch] = table.entries[k];
      list.push_back({ActionKind::kB, r + (V - 1 - local_stage) * P, microbatch});
    };
    const int warm_up = std::min((V - 1) * table.group + 2 * (P - 1 - r), total);
    for (int k = 0; k < warm_up; ++k) forward(k);
    for (int k = warm_up; k < total; ++k) {
      forward(k);
      backward(k - warm_up);
    }
    for (int k = total - warm_up; k < total; ++k) backward(k);
  }
  return schedule;
}

}  // namespace pipec
