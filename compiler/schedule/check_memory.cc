#include "compiler/schedule/check_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/fault.h"
#include "runtime/base/counted.h"

namespace pipec {
namespace {

// What a rank keeps in flight, action by action.
class InFlight {
 public:
  explicit InFlight(absl::Span<const KeptBytes> stages) : stages_(stages), microbatches_(stages.size(), 0) {}

  // Bytes while the action runs: what it makes is there and what it uses up not yet gone.
  int64_t Do(const Action& action) {
    const KeptBytes& stage = stages_[action.stage];
    const bool input = action.kind == ActionKind::kI || action.kind == ActionKind::kB;
    const bool weight = action.kind == ActionKind::kW || action.kind == ActionKind::kB;
    if (action.kind == ActionKind::kF)
      bytes_ += stage.until_input + stage.until_weight, ++microbatches_[action.stage];
    if (input) bytes_ += stage.between;
    const int64_t during = bytes_;
    if (input) bytes_ -= stage.until_input;
    if (weight) bytes_ -= stage.until_weight + stage.between, --microbatches_[action.stage];
    return during;
  }
  int microbatches(int stage) const { return microbatches_[stage]; }

 private:
  const absl::Span<const KeptBytes> stages_;
  std::vector<int> microbatches_;  // by stage, from F to B or W
  int64_t bytes_ = 0;
};

}  // namespace

std::vector<int64_t> MostKept(const Schedule& schedule, absl::Span<const KeptBytes> stages) {
  std::vector<int64_t> most;
  for (const auto& list : schedule.ranks) {
    InFlight in_flight(stages);
    int64_t& bytes = most.emplace_back(0);
    for (const Action& action : list) {
      if (IsCompute(action.kind)) bytes = std::max(bytes, in_flight.Do(action));
    }
  }
  return most;
}

absl::Status CheckMemory(const Schedule& schedule, const ScheduleMemory& memory) {
  const std::vector<int64_t> kept = MostKept(schedule, memory.stages);
  const auto beyond = [&](int r) { return memory.always[r] + kept[r] - memory.limits[r]; };
  int rank = 0;
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    if (beyond(r) > beyond(rank)) rank = r;
  }
  if (beyond(rank) <= 0) return absl::OkStatus();
  const int64_t limit = memory.limits[rank];
  if (memory.always[rank] > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("schedule ", schedule.name, ": rank ", rank, " needs ", memory.always[rank],
                     " bytes before anything is in flight, more than the limit of ", limit));
  }
  InFlight in_flight(memory.stages);
  int64_t bytes = 0;
  int position = -1;
  while (bytes <= limit) {
    const Action& action = schedule.ranks[rank][++position];
    if (IsCompute(action.kind)) bytes = memory.always[rank] + in_flight.Do(action);
  }
  const int stage = schedule.ranks[rank][position].stage, microbatches = in_flight.microbatches(stage);
  return absl::ResourceExhaustedError(absl::StrCat(
      "schedule ", schedule.name, ": ", NameOf(schedule, {rank, position}), ": ",
      Counted(microbatches, "microbatch", "microbatches"), " of stage ", stage, " in flight: ", bytes,
      " bytes, more than the limit of ", limit, GridAround(schedule, {{rank, position}})));
}

}  // namespace pipec
