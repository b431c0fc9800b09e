// Layouts nearer the bound than greedy ones: searches by canonical_search.h over capacities and orders.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

// Lowers the peak of a layout of items that are live and not empty, down to their bound if it can; stops where the peak
// is `enough` bytes or less. First the bound as capacity, then `enough`, then bisection up to the best peak found,
// down to a quarter of what lies between these two. Each capacity gets several orders with limits that double,
// counted in steps of the search, so that the result is the same on every machine.
void TightenLayout(absl::Span<const MemoryItem> items, int64_t enough, const LayoutEffort& effort,
                   std::vector<int64_t>& offsets);

}  // namespace pipec
