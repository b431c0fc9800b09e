// DualPipeV (DeepSeek-AI, DualPipe, 2025): V placement; in the steady phase the F of one microbatch and the B of
// another form a pair, which a device may overlap. P = 2, M = 4, B twice as long as F, the stage of the second half
// as '; pairs are F3 B1', F2' B0, F3' B1:
//
//   rank 0  F0 F1 F2 F0' I0' W0' F1' F3 B1'-- F2' B0--- B2'-- F3' .. B1--- B3'-- I2 W2 I3 W3
//   rank 1  .. F0 F0' F1 F1' F2 B0'-- F2' B0--- F3 B1'-- F3' B1--- B2'-- B2--- I3' I3 W3' W3
#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The list of one rank; which half a stage is in: 0 or 1.
class RankList {
 public:
  RankList(int first_stage, int second_stage, std::vector<Action>& list)
      : halves_{{first_stage}, {second_stage}}, list_(list) {}

  void F(int half) { list_.push_back({ActionKind::kF, halves_[half].stage, halves_[half].forwards++}); }
  void B(int half) { list_.push_back({ActionKind::kB, halves_[half].stage, halves_[half].backwards++}); }
  // Of what W is owed, the oldest first.
  void I(int half) {
    owed_.push_back({ActionKind::kW, halves_[half].stage, halves_[half].backwards});
    list_.push_back({ActionKind::kI, halves_[half].stage, halves_[half].backwards++});
  }
  void W() { list_.push_back(owed_[weights_++]); }
  void BOrI(int half, bool split) { split ? I(half) : B(half); }
  void Pair(int forward_half, int backward_half) {
    F(forward_half);
    list_.back().paired = true;
    B(backward_half);
  }

 private:
  struct Half {
    int stage, forwards = 0, backwards = 0;
  };
  Half halves_[2];
  std::vector<Action>& list_;
  std::vector<Action> owed_;
  size_t weights_ = 0;
};

}  // namespace

absl::StatusOr<Schedule> GenerateDualPipeV(const ScheduleShape& shape) {
  RETURN_IF_ERROR(NeedsTwoStagesARank("dualpipe-v", shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule("dualpipe-v", shape, Placement::kV));
  const int P = shape.ranks, M = shape.microbatches;
  if (M < 2 * P) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule dualpipe-v needs at least 2 microbatches a rank, got ", M, " on ",
                     Counted(P, "rank", "ranks"), "; ", 2 * P, " and more work"));
  }
  for (int r = 0; r < P; ++r) {
    RankList list(r, 2 * P - 1 - r, schedule.ranks[r]);
    for (int k = 0; k < 2 * (P - r - 1); ++k) list.F(0);
    for (int k = 0; k < r + 1; ++k) list.F(0), list.F(1);
    for (int k = 0; k < P - r - 1; ++k) list.I(1), list.W(), list.F(1);
    for (int k = 0; k < M - 2 * P + r + 1; ++k) {
      // The last rank's first F and B belong to one microbatch's way through: nothing to overlap.
      if (k == 0 && r == P - 1) {
        list.F(0), list.B(1);
      } else {
        list.Pair(0, 1);
      }
      list.Pair(1, 0);
    }
    for (int k = 0; k < P - r - 1; ++k) list.B(1), list.Pair(1, 0);
    const int turn = (r + 1) / 2;  // from here on I, and before B of the second half if r is odd
    for (int k = 0; k < r + 1; ++k) {
      list.BOrI(1, r % 2 == 1 ? k >= turn : k > turn);
      list.BOrI(0, k >= turn);
    }
    for (int k = 0; k < P - r - 1; ++k) list.W(), list.I(0);
    for (int k = 0; k < r + 1; ++k) list.W();
  }
  return schedule;
}

}  // namespace pipec
