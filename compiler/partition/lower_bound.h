// A bound on the slowest device that holds for every order of the blocks, not only for the one that is solved.
#pragma once

#include "compiler/partition/blocks.h"

namespace pipec {

// Seconds: no cut, in any valid order, has a faster slowest device. The smallest L that is not ruled out by
//   devices * L >= compute + 2 * (messages that cross boundaries between stages, each sent and received once)
// where the blocks in front of boundary b work no longer than the devices of the stages in front of it can
// within L, and those behind likewise; and the stage of the heaviest block (heavy_stage.h). Devices count by their
// speed.
double PartitionLowerBound(const PartitionProblem& problem, const Blocks& blocks);

}  // namespace pipec
