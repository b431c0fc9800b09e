// The end of a simulated step.
#pragma once

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

// Puts what happens once a step behind the simulated actions, in place of what is there of it. A rank sums its
// norms when its work is done. Where ranks wait for each other, all go on when the last is ready and the largest
// message has come. `step_seconds` is then the end of the last action. Where the step is validated late nobody
// waits for norms, and it is the time from step to step, of steps that are all alike: each rank is done with one
// before it begins the next, and the norms of all have come before it goes on behind the validation.
void SimulateUpdate(Module& module, const Cluster& cluster);

}  // namespace pipec
