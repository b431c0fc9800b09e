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

// The largest sum of live bytes (sizes rounded up to the alignment): no layout is smaller.
int64_t MemoryLowerBound(absl::Span<const MemoryItem> items);

// Takes apart what shares no time; each part by greedy best fit over several orders (size, area, start, width), the best
// of which it keeps, and by search where that leaves the peak more than 1 % above the bound. Deterministic: what a search
// may take is counted, not timed.
MemoryLayout SolveLayout(absl::Span<const MemoryItem> items);

// Independent of the solver: refuses two live items that overlap, a misaligned or negative offset, a wrong peak.
absl::Status CheckLayout(absl::Span<const MemoryItem> items, const MemoryLayout& layout);

}  // namespace pipec
