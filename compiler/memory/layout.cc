#include "compiler/memory/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "compiler/memory/time_index.h"

namespace pipec {
namespace {

int64_t Aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

bool Live(const MemoryItem& item) { return item.lower < item.upper; }

// Looks for the smallest gap that holds an item, among what lies in its way, shown by ascending offset.
class GapSearch {
 public:
  explicit GapSearch(int64_t size, int64_t bottom) : size_(size), top_(bottom) {}

  void Pass(int64_t offset, int64_t end) {
    const int64_t gap = offset - top_;
    if (gap >= size_ && (best_ < 0 || gap < best_gap_)) {
      best_ = top_;
      best_gap_ = gap;
    }
    top_ = std::max(top_, end);
  }
  // The gap's start, or the top if there is no gap.
  int64_t offset() const { return best_ < 0 ? top_ : best_; }

 private:
  const int64_t size_;
  int64_t top_;
  int64_t best_ = -1, best_gap_ = 0;
};

class GreedyLayout {
 public:
  GreedyLayout(absl::Span<const MemoryItem> items) : items_(items), index_(items) {}

  // Items that live all the time lie at the bottom, in their order, whatever the rest does: no layout loses
  // by that.
  void StackPermanent(absl::Span<const int> permanent, std::vector<int64_t>& offsets) {
    for (int i : permanent) {
      offsets[i] = bottom_;
      bottom_ += Aligned(items_[i].size);
    }
  }

  // Places `order` one by one, each in the smallest gap that holds it.
  void Place(absl::Span<const int> order, std::vector<int64_t>& offsets) {
    index_.Clear();
    by_offset_.clear();
    for (int i : order) {
      const int64_t size = Aligned(items_[i].size);
      GapSearch gaps(size, bottom_);
      const double neighbours = std::min<double>(index_.Neighbours(i), by_offset_.size() + 1);
      if (neighbours * std::log2(neighbours + 1) < by_offset_.size()) {
        in_the_way_.clear();
        found_.clear();
        index_.PlacedNeighbours(i, found_);
        for (int j : found_) in_the_way_.push_back({offsets[j], offsets[j] + Aligned(items_[j].size), j});
        std::sort(in_the_way_.begin(), in_the_way_.end());
        for (const Placed& p : in_the_way_) gaps.Pass(p.offset, p.end);
      } else {
        for (const Placed& p : by_offset_) {
          if (items_[p.item].lower < items_[i].upper && items_[i].lower < items_[p.item].upper) {
            gaps.Pass(p.offset, p.end);
          }
        }
      }
      offsets[i] = gaps.offset();
      index_.Place(i);
      const Placed placed{offsets[i], offsets[i] + size, i};
      by_offset_.insert(std::lower_bound(by_offset_.begin(), by_offset_.end(), placed), placed);
    }
  }

 private:
  struct Placed {
    int64_t offset, end;
    int item;
    bool operator<(const Placed& other) const {
      return std::tie(offset, end, item) < std::tie(other.offset, other.end, other.item);
    }
  };

  const absl::Span<const MemoryItem> items_;
  TimeIndex index_;
  int64_t bottom_ = 0;
  std::vector<Placed> by_offset_, in_the_way_;
  std::vector<int> found_;
};

int64_t Peak(absl::Span<const MemoryItem> items, const std::vector<int64_t>& offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i < items.size(); ++i) peak = std::max(peak, offsets[i] + Aligned(items[i].size));
  return peak;
}

}  // namespace

int64_t MemoryLowerBound(absl::Span<const MemoryItem> items) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // time, bytes; at one time what ends comes first
  for (const MemoryItem& item : items) {
    if (!Live(item)) continue;
    changes.push_back({item.lower, Aligned(item.size)});
    changes.push_back({item.upper, -Aligned(item.size)});
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, most = 0;
  for (const auto& [time, bytes] : changes) most = std::max(most, live += bytes);
  return most;
}

MemoryLayout SolveLayout(absl::Span<const MemoryItem> items) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const MemoryItem& item : items) {
    if (!Live(item)) continue;
    begin = std::min(begin, item.lower);
    end = std::max(end, item.upper);
  }
  std::vector<int> permanent, order;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    if (!Live(items[i]) || items[i].size == 0) continue;  // in nobody's way: offset 0
    (items[i].lower == begin && items[i].upper == end ? permanent : order).push_back(i);
  }

  GreedyLayout greedy(items);
  std::vector<int64_t> offsets(items.size(), 0);
  greedy.StackPermanent(permanent, offsets);
  const int64_t bound = MemoryLowerBound(items);
  auto width = [&](int i) { return static_cast<double>(items[i].upper - items[i].lower); };
  auto size = [&](int i) { return static_cast<double>(items[i].size); };
  auto area = [&](int i) { return size(i) * width(i); };
  auto start = [&](int i) { return static_cast<double>(items[i].lower); };
  // Largest key first; then the larger, the earlier.
  auto sort_by = [&](auto key) {
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return std::tuple(-key(a), -size(a), start(a), a) < std::tuple(-key(b), -size(b), start(b), b);
    });
  };

  MemoryLayout best;
  for (int round = 0; round < 4; ++round) {
    switch (round) {
      case 0:
        sort_by(size);
        break;
      case 1:
        sort_by(area);
        break;
      case 2:
        sort_by([&](int i) { return -start(i); });
        break;
      case 3:
        sort_by(width);
        break;
    }
    greedy.Place(order, offsets);
    const int64_t peak = Peak(items, offsets);
    if (round == 0 || peak < best.peak) best = {offsets, peak};
    if (best.peak == bound) break;
  }
  return best;
}

}  // namespace pipec
