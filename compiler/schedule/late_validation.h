// An update that does not wait for the other ranks. A step ends when the last rank has its norms, and only then is
// known whether gradients are clipped and whether all is finite; a rank that is done earlier would idle, and the
// bubble that a schedule keeps out of a step would come back between two of them. So UPDATE goes ahead, as if the
// norm changed nothing, and the next step begins; where the step before is validated, each rank takes the norms of
// all, and goes on if UPDATE was right. If not, UPDATE is made again from the parameters as they were, and the next
// step begins again (Qi et al. 2401.10241, "bypassing optimizer synchronization").
//
//   rank 0:  ... 0W7 NORM 0UPDATE | 0F0 0F1 0F2 v 0F3 ...
//   rank 2:      ...    2W7 NORM 2UPDATE | v 2F0 ...
//
// What stands in front of v can run twice: forward actions alone, of stages that keep nothing from one microbatch
// to the next. And nothing of it is under way across v: of a message both ends stand in front of it, or none.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

// The latest such places in the lists of a step, messages included; `repeats`: by stage, whether its F can run twice.
// Empty if no rank could do anything in front of it.
std::vector<int> LatestValidation(const Schedule& schedule, const std::vector<bool>& repeats);

// Refuses, naming rank and action, places that do not promise that; which stages repeat it does not know. None: fine.
absl::Status CheckValidation(const Schedule& schedule, absl::Span<const int> at);

}  // namespace pipec
