#include "compiler/memory/time_index.h"

#include <algorithm>

namespace pipec {

TimeIndex::TimeIndex(absl::Span<const MemoryItem> items, absl::Span<const int> members)
    : items_(items), by_lower_(members.begin(), members.end()), placed_(items.size(), 0) {
  for (int i : members) {
    lowers_.push_back(items[i].lower);
  }
  std::sort(by_lower_.begin(), by_lower_.end(),
            [&](int a, int b) { return std::pair(items[a].lower, a) < std::pair(items[b].lower, b); });
  std::sort(lowers_.begin(), lowers_.end());
  times_ = lowers_;
  for (int i : members) times_.push_back(items[i].upper);
  std::sort(times_.begin(), times_.end());
  times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  covering_.resize(2 * times_.size());
}

int TimeIndex::TimeOf(int64_t time) const {
  return std::lower_bound(times_.begin(), times_.end(), time) - times_.begin();
}

int TimeIndex::StartsDuring(int i) const {
  return std::lower_bound(lowers_.begin(), lowers_.end(), items_[i].upper) -
         std::lower_bound(lowers_.begin(), lowers_.end(), items_[i].lower);
}

void TimeIndex::Clear() {
  std::fill(placed_.begin(), placed_.end(), 0);
  for (auto& list : covering_) list.clear();
}

void TimeIndex::Place(int i) {
  placed_[i] = 1;
  const int leaves = times_.size();
  for (int l = TimeOf(items_[i].lower) + leaves, u = TimeOf(items_[i].upper) + leaves; l < u;
       l /= 2, u /= 2) {
    if (l & 1) covering_[l++].push_back(i);
    if (u & 1) covering_[--u].push_back(i);
  }
}

void TimeIndex::PlacedNeighbours(int i, std::vector<int>& result) const {
  // Those live when i starts ...
  for (int node = TimeOf(items_[i].lower) + static_cast<int>(times_.size()); node > 0; node /= 2) {
    result.insert(result.end(), covering_[node].begin(), covering_[node].end());
  }
  // ... and those that start while it lives.
  auto later = std::upper_bound(by_lower_.begin(), by_lower_.end(), items_[i].lower,
                                [&](int64_t time, int item) { return time < items_[item].lower; });
  for (; later != by_lower_.end() && items_[*later].lower < items_[i].upper; ++later) {
    if (placed_[*later]) result.push_back(*later);
  }
}

}  // namespace pipec
