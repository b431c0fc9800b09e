#include "compiler/schedule/schedule.h"

#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"

namespace pipec {
namespace {

constexpr ScheduleInfo kSchedules[] = {
    {"gpipe", Placement::kLoop, 1, false, false,
     "all forwards, then all backwards; bubble (P-1)(F+B), keeps M activations; any M, V = 1", GenerateGpipe},
    {"1f1b", Placement::kLoop, 1, false, false,
     "one forward, one backward after a warm-up; bubble (P-1)(F+B), keeps min(P-r, M) activations; any M, V "
     "= 1",
     GenerateOneFOneB},
    {"eager-1f1b", Placement::kLoop, 1, false, false,
     "1f1b with twice the warm-up, which hides the time of messages; bubble (P-1)(F+B), keeps "
     "min(2(P-1-r)+1, M) "
     "activations; any M, V = 1",
     GenerateEagerOneFOneB},
    {"looped-bfs", Placement::kLoop, 2, false, false,
     "gpipe over V stages a rank, one stage after the other; bubble (P-1)(F+B)/V, keeps M activations; any M "
     "and V",
     GenerateLoopedBfs},
    {"interleaved", Placement::kLoop, 2, false, false,
     "1f1b over V stages a rank; bubble (P-1)(F+B)/V for V times the messages; M a multiple of max(1, M/P)",
     GenerateInterleaved},
    {"zb-h1", Placement::kLoop, 1, true, false,
     "1f1b with W apart, filling waits; bubble (P-1)(F+I-min(F,I,W))/V, keeps P activations until W; any M "
     "if V = 1, "
     "else a multiple of max(1, M/P)",
     GenerateZbH1},
    {"zb-h2", Placement::kLoop, 1, true, false,
     "W apart and twice the warm-up: no wait inside a rank's span if F = I = W and M >= 2P; keeps at most 2P "
     "activations until W; any M, V = 1",
     GenerateZbH2},
    {"zb-v", Placement::kV, 2, true, false,
     "W apart, a rank holds r and 2P-1-r: no wait inside a rank's span if F = I = W and M >= 2P-1; keeps 2P "
     "half "
     "activations; any M, V = 2",
     GenerateZbV},
    {"v-half", Placement::kV, 2, true, false,
     "W apart, a rank holds r and 2P-1-r: about half the memory and bubble of 1f1b, P+2 half activations if "
     "P is even; "
     "any M, V = 2",
     GenerateVHalf},
    {"v-min", Placement::kV, 2, true, false,
     "W apart, a rank holds r and 2P-1-r: about a third of the memory and two thirds of the bubble of 1f1b; "
     "any M, V = 2",
     GenerateVMin},
    {"dualpipe-v", Placement::kV, 2, true, false,
     "a rank holds r and 2P-1-r, F and B of two microbatches in pairs; keeps 2P+1 half activations; M >= 2P, "
     "V = 2",
     GenerateDualPipeV},
    {"infer", Placement::kLoop, 1, false, true,
     "forward only: microbatch m at stage s at tick m+s; two message buffers a link; any M and V",
     GenerateInfer},
};

}  // namespace

absl::Span<const ScheduleInfo> AllSchedules() { return kSchedules; }

const ScheduleInfo* FindSchedule(absl::string_view name) {
  for (const ScheduleInfo& info : kSchedules) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::vector<int> PlaceStages(const ScheduleShape& shape, Placement placement) {
  std::vector<int> rank_of_stage(shape.stages());
  for (int s = 0; s < shape.stages(); ++s) {
    const bool mirrored = placement == Placement::kV && s >= shape.ranks;
    rank_of_stage[s] = mirrored ? 2 * shape.ranks - 1 - s : s % shape.ranks;
  }
  return rank_of_stage;
}

absl::StatusOr<Schedule> EmptySchedule(absl::string_view name, const ScheduleShape& shape,
                                       Placement placement) {
  if (shape.ranks < 1 || shape.virtual_stages < 1 || shape.microbatches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", name, ": ranks ", shape.ranks, ", virtual stages ", shape.virtual_stages,
                     ", microbatches ", shape.microbatches, "; each must be at least 1"));
  }
  Schedule schedule;
  schedule.name = std::string(name);
  schedule.shape = shape;
  schedule.rank_of_stage = PlaceStages(shape, placement);
  schedule.ranks.resize(shape.ranks);
  return schedule;
}

absl::Status NeedsOneStageARank(absl::string_view name, const ScheduleShape& shape) {
  if (shape.virtual_stages == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("schedule ", name, " holds one stage a rank, got ",
                                                 shape.virtual_stages,
                                                 " virtual stages; interleaved takes more than 1"));
}

absl::Status NeedsTwoStagesARank(absl::string_view name, const ScheduleShape& shape) {
  if (shape.virtual_stages == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", name, " holds two stages a rank, got --virtual-stages=", shape.virtual_stages,
                   "; interleaved takes any number"));
}

}  // namespace pipec
