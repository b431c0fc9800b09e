// A bound by the heaviest blocks: what the stage of such a block takes at least, with its messages.
#pragma once

#include "compiler/partition/blocks.h"

namespace pipec {

// Seconds: `bound`, or more if some block shows that a slowest stage takes longer on devices that are no faster than
// `speed`. Whatever lies in a block's stage with it, that stage is one side of a cut through a network in which a
// block on that side costs its compute and a tensor with blocks on both sides its messages: any flow from the block
// through the network is a bound. Looks at few of the heaviest blocks, for a millisecond or so each.
double HeavyStageBound(const Blocks& blocks, double speed, double bound);

}  // namespace pipec
