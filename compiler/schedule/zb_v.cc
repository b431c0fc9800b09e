// ZB-V (Qi et al., Pipeline Parallelism with Controllable Memory, 2405.15362): V placement, rank r holds stage r
// and its mirror image 2P-1-r, so that the first gradients are at hand as soon as a microbatch is through, and no
// rank waits inside its own span for the memory of 1f1b. P = 2, M = 3, the stage of the second half as ' :
//
//   rank 0  F0 F1 F2 F0' I0' W0' F1' I1' W1' I0 W0 F2' I2' W2' I1 W1 I2 W2
//   rank 1  .. F0 F0' F1 F1' I0' W0' F2 I0 W0 F2' I1' W1' I1 I2' I2 W1 W2' W2
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The list of one rank; which half a stage is in: 0 or 1.
class RankList {
 public:
  RankList(const ScheduleShape& shape, int rank, std::vector<Action>& list)
      : shape_(shape), rank_(rank), list_(list) {}

  int forwards(int half) const { return done_[half][0]; }
  int inputs(int half) const { return done_[half][1]; }
  int weights(int half) const { return done_[half][2]; }
  void F(int half) { Add(ActionKind::kF, half, done_[half][0]++); }
  void I(int half) { Add(ActionKind::kI, half, done_[half][1]++); }
  void W(int half) { Add(ActionKind::kW, half, done_[half][2]++); }

 private:
  // The recipe is one for 2P-1 microbatches at least; those that there are not are left out.
  void Add(ActionKind kind, int half, int microbatch) {
    if (microbatch < shape_.microbatches)
      list_.push_back({kind, half == 0 ? rank_ : 2 * shape_.ranks - 1 - rank_, microbatch});
  }

  const ScheduleShape& shape_;
  const int rank_;
  std::vector<Action>& list_;
  std::array<std::array<int, 3>, 2> done_ = {};
};

}  // namespace

absl::StatusOr<Schedule> GenerateZbV(const ScheduleShape& shape) {
  RETURN_IF_ERROR(NeedsTwoStagesARank("zb-v", shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("zb-v", shape, Placement::kV));
  const int P = shape.ranks, n = std::max(2 * P - 1, shape.microbatches);
  for (int r = 0; r < P; ++r) {
    RankList list(shape, r, schedule.ranks[r]);
    for (int k = 0; k < 2 * (P - r) - 1; ++k) list.F(0);
    for (int k = 0; k < r; ++k) list.F(1), list.F(0);
    for (int k = 0; k < P - r; ++k) list.F(1), list.I(1), list.W(1);
    while (list.forwards(1) < list.forwards(0) || list.forwards(0) < n) {
      if (list.forwards(0) < n) list.F(0);
      list.I(0), list.W(0);
      list.F(1), list.I(1), list.W(1);
    }
    for (int k = 0; k < r; ++k) list.I(0), list.I(1);
    for (int k = 0; k < P - r; ++k) list.I(0), list.W(0);
    while (list.weights(1) < list.inputs(1)) list.W(1);
    while (list.weights(0) < list.inputs(0)) list.W(0);
  }
  return schedule;
}

}  // namespace pipec
