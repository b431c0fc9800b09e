#include "compiler/schedule/schedule.h"

#include "absl/strings/str_cat.h"
#include "compiler/schedule/generators.h"

namespace pipec {
absl::string_view Name(Placement placement) { return placement == Placement::kLoop ? "loop" : "V"; }

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
