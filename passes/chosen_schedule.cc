#include "passes/chosen_schedule.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status RefuseName(Mode mode, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const ScheduleInfo& row : AllSchedules()) {
    if (row.forward_only == (mode == Mode::kInfer)) names.push_back(row.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--schedule=", name, FindSchedule(name) ? " is not for --mode=" : " is unknown; for --mode=",
      mode == Mode::kInfer ? "infer" : "train", FindSchedule(name) ? "; " : " ",
      names.size() == 1 ? "there is " : "there are ", absl::StrJoin(names, ", ")));
}

bool OnlyGoesForward(const Schedule& schedule) {
  return std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [](const std::vector<Action>& list) {
    return std::all_of(list.begin(), list.end(), [](const Action& a) { return a.kind == ActionKind::kF; });
  });
}

}  // namespace

absl::StatusOr<Schedule> ChosenSchedule(Mode mode, const CompileOptions& options) {
  if (options.schedule_from_file) {
    const Schedule& schedule = *options.schedule_from_file;
    // As yet it is anybody's: its faults are told before anything is decided by it.
    RETURN_IF_ERROR(CheckSchedule(schedule, {}));
    if (OnlyGoesForward(schedule) == (mode == Mode::kInfer)) return schedule;
    return absl::InvalidArgumentError(absl::StrCat("--schedule=", schedule.name,
                                                   mode == Mode::kInfer
                                                       ? " goes backward too; it is for --mode=train"
                                                       : " only goes forward; it is for --mode=infer"));
  }
  if (options.schedule == kAutoSchedule)
    return absl::UnimplementedError(
        "--schedule=auto compiles the model many times, which only pipec does; name a schedule");
  const ScheduleInfo* info = FindSchedule(options.schedule);
  if (!info || info->forward_only != (mode == Mode::kInfer)) return RefuseName(mode, options.schedule);
  const int virtual_stages =
      options.virtual_stages > 0 ? options.virtual_stages : info->default_virtual_stages;
  return info->generate({options.ranks, virtual_stages, options.microbatches});
}

bool UpdatesEachMicrobatch(const CompileOptions& options) {
  const ScheduleInfo* info = options.schedule_from_file ? nullptr : FindSchedule(options.schedule);
  return info && info->updates_each_microbatch;
}

}  // namespace pipec
