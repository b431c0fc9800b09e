// The part of VerifyRankPlan that reads the lists of actions (invariants "actions" in verify.h).
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// Programs and messages must have been checked.
absl::Status CheckActions(const plan::RankPlan& rank_plan);

}  // namespace pipec
