// --schedule=auto: what passes/auto_schedule finds for the model of the flags.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/report/report.h"
#include "passes/auto_schedule.h"
#include "tools/compile_flags.h"

namespace pipec {

// `flags` as given, not yet imported.
absl::StatusOr<AutoSchedule> ChooseSchedule(const CompileFlags& flags);

void AddCandidates(const AutoSchedule& chosen, Report& report);

}  // namespace pipec
