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
    {"interleaved", Placement::kLoop, 2, false, false,
     "1f1b over V stages a rank; bubble (P-1)(F+B)/V for V times the messages; M a multiple of max(1, M/P)",
     GenerateInterleaved},
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

}  // namespace pipec
