// Fewer, larger items: what lives and dies together is placed as one.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

// An item and what it may be bundled with: others of its group.
struct BundledItem {
  MemoryItem item;
  int group = 0;
};

struct Bundle {
  std::vector<int> members;
  std::vector<int64_t> offsets;  // of the members, within the bundle
  int64_t size = 0;              // bytes
};

// Every item in one bundle. With no more than `most` items each is alone. Else those of a group that die one after
// the other are put together, about as many bytes in each bundle, so that there are no more than `most` plus one a
// group; what lies in a bundle is laid out by SolveLayout.
std::vector<Bundle> MakeBundles(absl::Span<const BundledItem> items, int most);

}  // namespace pipec
