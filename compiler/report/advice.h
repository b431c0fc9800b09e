// What the figures of a plan suggest to do, in words.
#pragma once

#include <string>
#include <vector>

#include "compiler/report/report.h"

namespace pipec {

// One sentence each, with the numbers it rests on; none if there is nothing to say. `report` is complete but for
// the advice.
std::vector<std::string> Advice(const Module& module, const Cluster& cluster, const Report& report,
                                const Settled& settled = {});

// What follows from the plans that this one was chosen from, of up to `most_ranks` ranks; `report` holds them.
std::vector<std::string> AdviceOnChoice(const Report& report, int most_ranks);

}  // namespace pipec
