// Memory by itself: the least bytes a stage must be allowed, whatever its time.
#pragma once

#include "compiler/partition/blocks.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {

// Whether some cut of the blocks, in their order, keeps every stage within its cap. A segment's bytes only grow
// when the segment does, so for each stage two pointers pass once over the blocks. Time: stages * blocks.
bool FitsStageCaps(const Blocks& blocks, const StageRules& rules);

// The least number of bytes such that FitsStageCaps with it at every stage. Time: FitsStageCaps', times the
// logarithm of the bytes.
int64_t LeastStageCap(const Blocks& blocks, StageRules rules);

}  // namespace pipec
