#include "compiler/memory/time_index.h"

#include <algorithm>

namespace pipec {

TimeIndex::TimeIndex(absl::Span<const MemoryItem> items) : items_(items), placed_(items.size(), 0) {
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    if (items[i].lower >= items[i].upper) continue;
    by_lower_.push_back(i);
    lowers_.push_back(items[i].lower);
    uppers_.push_back(items[i].upper);
  }
  std::sort(by_lower_.begin(), by_lower_.end(),
            [&](int a, int b) { return std::pair(items[a].lower, a) < std::pair(items[b].lower, b); });
  std::sort(lowers_.begin(), lowers_.end());
  std::sort(uppers_.begin(), uppers_.end());
  times_ = lowers_;
  times_.insert(times_.end(), uppers_.begin(), uppers_.end());
  std::sort(times_.begin(), times_.end());
  times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  covering_.resize(2 * times_.size());
}

int TimeIndex::TimeOf(int64_t time) const {
  return std::lower_bound(times_.begin(), times_.end(), time) - times_.begin();
}

int TimeIndex::Neighbours(int i) const {
  // All that start before i ends, less those that end before it starts.
  const auto started = std::lower_bound(lowers_.begin(), lowers_.end(), items_[i].upper) - lowers_.begin();
  const auto ended = std::upper_bound(uppers_.begin(), uppers_.end(), items_[i].lower) - uppers_.begin();
  return started - ended;
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
