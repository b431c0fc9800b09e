// Interleaved 1F1B (Narayanan et al., Megatron-LM, 2104.04473): rank r holds stages r, r+P, ... and works on
// them in groups of N microbatches, which shortens the bubble V times. P = 2, V = 2 (stages 0 2 | 1 3), M =
// 4, N = 2, written <stage>F<microbatch>, in order of work, without times:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
//   rank 1  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

int Rounds(int ranks, int microbatches) { return std::max(1, microbatches / ranks); }

bool Divides(int ranks, int microbatches) { return microbatches % Rounds(ranks, microbatches) == 0; }

absl::Status CheckMicrobatches(const ScheduleShape& shape) {
  const int P = shape.ranks, M = shape.microbatches;
  if (Divides(P, M)) return absl::OkStatus();
  int below = M, above = M;
  while (!Divides(P, below)) --below;
  while (!Divides(P, above)) ++above;
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule interleaved cannot take ", M, " microbatches on ", P, " ranks: they go through in ",
      Rounds(P, M), " rounds of equal size; the nearest numbers that work are ", below, " and ", above));
}

}  // namespace

absl::StatusOr<Schedule> GenerateInterleaved(const ScheduleShape& shape) {
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("interleaved", shape, Placement::kLoop));
  RETURN_IF_ERROR(CheckMicrobatches(shape));
  const int P = shape.ranks, V = shape.virtual_stages, M = shape.microbatches;
  const int group = M / Rounds(P, M);

  // The k-th forward of every rank: which of its stages, which microbatch. Backwards go the same way from the
  // last stage.
  struct Entry {
    int local_stage, microbatch;
  };
  std::vector<Entry> table;
  for (int first = 0; first < M; first += group) {
    for (int c = 0; c < V; ++c) {
      for (int m = first; m < first + group; ++m) table.push_back({c, m});
    }
  }

  const int total = V * M;
  for (int r = 0; r < P; ++r) {
    std::vector<Action>& list = schedule.ranks[r];
    auto forward = [&](int k) {
      list.push_back({ActionKind::kF, r + table[k].local_stage * P, table[k].microbatch});
    };
    auto backward = [&](int k) {
      list.push_back({ActionKind::kB, r + (V - 1 - table[k].local_stage) * P, table[k].microbatch});
    };
    const int warm_up = std::min((V - 1) * group + 2 * (P - 1 - r), total);
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
