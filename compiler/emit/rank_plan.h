// A planned module as the file of one rank.
#pragma once

#include "compiler/cost/cluster.h"
#include "compiler/emit/parameter_placement.h"
#include "compiler/ir/module.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// The plan of rank `rank` of a module at level planned (runtime/plan/FORMAT.md). Errors: a constant whose
// file cannot be read. `device` is what the modelled times of instructions are of; null: they are left out.
absl::StatusOr<plan::RankPlan> MakeRankPlan(const Module& module, int rank,
                                            const ParameterPlacement& placement,
                                            absl::string_view pipec_version, const DeviceProfile* device);

}  // namespace pipec
