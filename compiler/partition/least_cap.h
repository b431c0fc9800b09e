// Memory by itself: the least bytes a stage must be allowed, whatever its time.
#pragma once

#include "compiler/partition/blocks.h"

namespace pipec {

// Whether some cut into in_flight.size() stages keeps every stage within `cap` bytes. A segment's bytes only
// grow when the segment does, so for each stage two pointers pass once over the blocks. Time: stages *
// blocks.
bool FitsStageCap(const Blocks& blocks, const std::vector<int>& in_flight, int64_t cap);

// The least number of bytes such that FitsStageCap. Time: FitsStageCap's, times the logarithm of the bytes.
int64_t LeastStageCap(const Blocks& blocks, const std::vector<int>& in_flight);

}  // namespace pipec
