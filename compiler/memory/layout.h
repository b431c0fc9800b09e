// Memory layout of one rank: which bytes of the arena a buffer occupies. Plain structs; knows no graph.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pipec {

inline constexpr int64_t kBufferAlignment = 64;

// A buffer is live on [lower, upper) of an abstract time axis.
struct MemoryItem {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size = 0;  // bytes
};

struct MemoryLayout {
  std::vector<int64_t> offsets;  // one an item, multiples of kBufferAlignment
  int64_t peak = 0;              // highest end of any item, rounded up to the alignment
};

// How much a search may take. Deterministic: it is counted in steps, not timed.
struct LayoutEffort {
  int64_t below = 0;               // bytes under all items, which count where a gap is judged
  double enough = 1;               // times the bound: where a search may end
  int64_t steps = 100'000'000;     // for the capacity that is enough, about 10 s
  int64_t bisection = 10'000'000;  // for each other capacity
};

// The largest sum of live bytes (sizes rounded up to the alignment): no layout is smaller.
int64_t MemoryLowerBound(absl::Span<const MemoryItem> items);

// Takes apart what shares no time; each part by greedy best fit over several orders (size, area, start, width), the
// best of which it keeps, and by search where that leaves the peak more than half a percent above the bound.
MemoryLayout SolveLayout(absl::Span<const MemoryItem> items, const LayoutEffort& effort = {});

// Independent of the solver: refuses two live items that overlap, a misaligned or negative offset, a wrong peak.
absl::Status CheckLayout(absl::Span<const MemoryItem> items, const MemoryLayout& layout);

}  // namespace pipec
