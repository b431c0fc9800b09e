// Parameters that stay in the user's own files, outside the plan: whether those are still what pipec saw
// (FORMAT.md, "Linked data").
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// Before a rank starts: its linked parameters lie where the manifest says; where a file has another size or
// time of change than it had, its slices have the hashes they had. InvalidArgument names the parameter and
// the file.
absl::Status CheckLinkedData(const plan::RankPlan& rank_plan, const Manifest& manifest);

// All linked parameters of the plan, hashes always taken.
absl::Status CheckLinkedData(const Manifest& manifest);

}  // namespace pipec
