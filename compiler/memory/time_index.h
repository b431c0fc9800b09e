// Which placed items are live at some time of an interval: a segment tree over the items' end points.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

class TimeIndex {
 public:
  // Of the items listed in `members`, all live (lower < upper). `items` must outlive the index.
  TimeIndex(absl::Span<const MemoryItem> items, absl::Span<const int> members);

  // How many members, placed or not, start while item i is live; itself included.
  int StartsDuring(int i) const;

  void Clear();
  void Place(int i);
  // Appends the placed items that are live at some time when item i is, each once. Time: their number, plus
  // that of items which start while i is live, plus log n.
  void PlacedNeighbours(int i, std::vector<int>& result) const;

 private:
  int TimeOf(int64_t time) const;

  const absl::Span<const MemoryItem> items_;
  std::vector<int64_t> times_;              // distinct end points, ascending
  std::vector<int> by_lower_;               // items
  std::vector<int64_t> lowers_;             // of all members, sorted
  std::vector<char> placed_;                // by item
  std::vector<std::vector<int>> covering_;  // by node of the tree: placed items that cover all of its times
};

}  // namespace pipec
