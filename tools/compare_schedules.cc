#include "tools/compare_schedules.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "tools/choose_plan.h"
#include "tools/compile_module.h"

namespace pipec {
namespace {

absl::StatusOr<StepPicture> StepOf(CompileFlags flags, const std::string& schedule, const Module& other) {
  flags.UseSchedule(schedule, other);
  const bool open = flags.LeavesOpen();
  if (open) {
    ASSIGN_OR_RETURN(const ChosenPlan chosen, ChoosePlan(flags));
    flags.UseCandidate(chosen.plan.candidates[0]);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, CompileModule(flags));
  StepPicture step = ModelledStep(*module, OriginsOf(*module, flags.context().options.cluster));
  // What the search found has no other name.
  if (open && step.schedule != schedule) step.schedule = absl::StrCat(schedule, ": ", step.schedule);
  return step;
}

}  // namespace

std::vector<ComparedStep> CompareSchedules(const CompileFlags& flags,
                                           const std::vector<std::string>& schedules, const Module& module) {
  std::vector<ComparedStep> compared;
  for (const std::string& schedule : schedules) {
    ComparedStep& row = compared.emplace_back();
    row.schedule = schedule;
    absl::StatusOr<StepPicture> step = StepOf(flags, schedule, module);
    if (step.ok()) {
      row.step = *std::move(step);
    } else {
      row.refusal = std::string(step.status().message());
    }
  }
  return compared;
}

}  // namespace pipec
