// Greedy best fit: each item in turn goes into the smallest gap that holds it.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

// Offsets of items that are live and not empty: the best layout of those by size, area, start and width. Time: by
// order, the pairs that are live together, or n log n with as many long items.
std::vector<int64_t> SolveGreedily(absl::Span<const MemoryItem> items);

}  // namespace pipec
