#include "tools/choose_schedule.h"

#include "passes/pass_manager.h"
#include "runtime/base/status.h"
#include "tools/compile_module.h"

namespace pipec {

absl::StatusOr<AutoSchedule> ChooseSchedule(const CompileFlags& flags) {
  CompileFlags resolved = flags;
  RETURN_IF_ERROR(resolved.Import().status());
  const auto compile =
      [&flags](const ScheduleCandidate& candidate) -> absl::StatusOr<std::unique_ptr<Module>> {
    CompileFlags with = flags;
    with.UseCandidate(candidate);
    if (!candidate.found) return CompileModule(with);
    // Its time was found without recompute: rather an order that keeps less.
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, with.Import());
    RETURN_IF_ERROR(RunPipeline(*module, with.context()));
    return module;
  };
  return FindAutoSchedule(resolved.context().options, compile);
}

void AddCandidates(const AutoSchedule& chosen, Report& report) {
  for (const ScheduleCandidate& candidate : chosen.candidates) {
    report.candidates.push_back({candidate.name, candidate.virtual_stages, candidate.step_seconds,
                                 candidate.order_seconds, candidate.bubble_ratio, candidate.peak_bytes,
                                 candidate.refusal});
  }
  report.candidates_bound_seconds = chosen.bound_seconds;
}

}  // namespace pipec
