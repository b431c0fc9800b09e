// What a finished module says about any other order of its actions.
#pragma once

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "compiler/schedule/search/problem.h"

namespace pipec {

// The scheduling problem of a module at level planned: its stages where they are, their modelled times and messages,
// what a microbatch keeps, by the buffers of its plan, and what is left for that of the memory of a device once all
// else has its place. If its schedule has B, what I and W apart would keep is not known, and there is no limit.
ScheduleProblem ScheduleProblemOf(const Module& module, const Cluster& cluster);

}  // namespace pipec
