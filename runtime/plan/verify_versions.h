// What lies in several places, one a weight version.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// Whether a tensor (in range) is in a slot class of the rule.
bool HasRule(const plan::RankPlan& rank_plan, int32_t tensor, plan::SlotRule rule);
bool HasVersions(const plan::RankPlan& rank_plan, int32_t tensor);

// Parameters and optimizer state of several versions are written by updates alone, each by one instruction, which
// nobody reads them after. What is made of a version is written where it is read. Where steps are validated late an
// update writes no others.
absl::Status CheckVersions(const plan::RankPlan& rank_plan);

}  // namespace pipec
