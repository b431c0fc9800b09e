// A bound on the slowest stage that holds for every order of the blocks, not only for the one that is solved.
#pragma once

#include "compiler/partition/blocks.h"

namespace pipec {

// Seconds: no cut into `stages` stages, in any order in which producers come before consumers, has a faster
// slowest stage. The smallest L that is not ruled out by
//   stages * L >= compute + 2 * (messages that cross boundaries between stages, each sent and received once)
// where the blocks in front of boundary b work between compute - (stages - b) L and b L; and the heaviest
// block.
double PartitionLowerBound(const Blocks& blocks, int stages);

}  // namespace pipec
