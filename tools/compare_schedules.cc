#include "tools/compare_schedules.h"

#include "passes/pass_manager.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<StepPicture> StepOf(CompileFlags flags, const std::string& schedule, const Module& other) {
  flags.UseSchedule(schedule, other);
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, flags.Import());
  absl::Status lowered = RunPipeline(*module, flags.context());
  if (absl::IsResourceExhausted(lowered) && flags.RecomputeEverywhere()) {
    ASSIGN_OR_RETURN(module, flags.Import());
    lowered = RunPipeline(*module, flags.context());
  }
  RETURN_IF_ERROR(lowered);
  return ModelledStep(*module);
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
