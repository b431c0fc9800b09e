// The schedule that the user chose: by name, or from a file.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "passes/pass.h"

namespace pipec {

// In place of a schedule's name: it is to be chosen (auto_plan.h).
inline constexpr char kAutoSchedule[] = "auto";

// Compute actions only. InvalidArgument if there is no such schedule, if it is not for the mode, or if it cannot
// take the ranks, virtual stages or microbatches asked for.
absl::StatusOr<Schedule> ChosenSchedule(Mode mode, const CompileOptions& options);

// Whether every microbatch is followed by an update that each stage makes by itself.
bool UpdatesEachMicrobatch(const CompileOptions& options);

}  // namespace pipec
