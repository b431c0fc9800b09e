// --schedule=auto, --stages=auto, --microbatches=auto: what passes/auto_plan finds for the model of the flags.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/report/report.h"
#include "passes/auto_plan.h"
#include "tools/compile_flags.h"

namespace pipec {

struct ChosenPlan {
  AutoPlan plan;
  int most_ranks = 1;                // of those that there were to choose from
  std::vector<std::string> assumed;  // what it was chosen from, each with the flag that changes it
};

// `flags` as given, not yet imported.
absl::StatusOr<ChosenPlan> ChoosePlan(const CompileFlags& flags);

void AddCandidates(const ChosenPlan& chosen, Report& report);

}  // namespace pipec
