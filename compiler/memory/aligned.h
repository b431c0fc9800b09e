// Bytes in units of kBufferAlignment, and the highest end of a layout.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

inline int64_t Aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

inline int64_t PeakOf(absl::Span<const MemoryItem> items, absl::Span<const int64_t> offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i < items.size(); ++i) peak = std::max(peak, offsets[i] + Aligned(items[i].size));
  return peak;
}

}  // namespace pipec
