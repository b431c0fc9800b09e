// Whether the ranks get through their lists when every send blocks until its receive is posted.
#pragma once

#include "compiler/schedule/schedule.h"

namespace pipec {

// Runs all lists together: a compute action waits for what it needs to be made on its rank or sent to it, a send
// until the peer has got to its receive. `has_messages`: or else what goes over a link is there as soon as it is
// made. The schedule must have passed all of CheckSchedule's other checks. InvalidArgument: names the actions that
// wait for each other.
absl::Status CheckCompletes(const Schedule& schedule, absl::Span<const StageLink> links, bool has_messages);

}  // namespace pipec
