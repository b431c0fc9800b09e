// How fast a step can be at best.
#pragma once

#include "compiler/schedule/search/problem.h"

namespace pipec {

// Seconds that no order of the tasks can beat, the stages being where they are:
//  - one machine: each rank has to do its tasks, none before the longest path that leads to it, and what follows
//    takes its
//    longest path (Carlier, 1982, with Jackson's preemptive rule: the most that any subset of the tasks enforces);
//  - memory: a microbatch keeps its bytes for at least as long as it travels to the last stage and back, and a rank
//    has only
//    so many byte-seconds; the first and the last of them cannot be used, as a rank does one F and one W at a time.
double MakespanBound(const ScheduleProblem& problem);

}  // namespace pipec
