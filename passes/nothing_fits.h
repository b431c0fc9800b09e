// The refusal when memory holds none of the plans that there are to choose from.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "passes/pass.h"
#include "passes/plan_maker.h"
#include "passes/plan_space.h"

namespace pipec {

struct LackingMemory {
  PlanCandidate candidate;
  int64_t least_bytes = 0;  // a device: it needs no less
};

// ResourceExhausted: the least memory a device that would do for one of these plans, the plan, and the flags that
// lower it. Each of the few that may need least is compiled with what it is said to need, and what it is then said
// to need, until that does.
absl::Status NothingFits(const CompileOptions& options, const PlanSpace& space,
                         std::vector<LackingMemory> lacking, PlanMaker& maker);

}  // namespace pipec
