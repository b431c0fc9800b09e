// A planned module as the file of one rank.
#pragma once

#include "compiler/emit/parameter_placement.h"
#include "compiler/ir/module.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// The plan of rank `rank` of a module at level planned (runtime/plan/FORMAT.md). Errors: a constant whose
// file cannot be read.
absl::StatusOr<plan::RankPlan> MakeRankPlan(const Module& module, int rank,
                                            const ParameterPlacement& placement,
                                            absl::string_view pipec_version);

}  // namespace pipec
