#include "compiler/memory/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  // `members`: the items that Place gets, in any order. All will lie at `bottom` or above.
  GreedyLayout(absl::Span<const MemoryItem> items, absl::Span<const int> members, int64_t bottom)
      : items_(items), index_(items, members), long_(items.size(), false), bottom_(bottom) {
    const double log = std::log2(members.size() + 1);
    for (int i : members) long_[i] = index_.StartsDuring(i) * log > members.size();
  }

  // Places `order` one by one, each in the smallest gap that holds it.
  void Place(absl::Span<const int> order, std::vector<int64_t>& offsets) {
    index_.Clear();
    placed_.clear();
    placed_long_.clear();
    unsorted_ = 0;
    for (int i : order) {
      GapSearch gaps(Aligned(items_[i].size), bottom_);
      if (long_[i]) {
        SortPlaced();
        ForEachInTheWay(i, placed_, [&](const Placed& p) { gaps.Pass(p.offset, p.end); });
      } else {
        CollectShort(i, offsets);
        auto next = placed_short_.begin();
        ForEachInTheWay(i, placed_long_, [&](const Placed& p) {
          for (; next != placed_short_.end() && *next < p; ++next) gaps.Pass(next->offset, next->end);
          gaps.Pass(p.offset, p.end);
        });
        for (; next != placed_short_.end(); ++next) gaps.Pass(next->offset, next->end);
      }

      offsets[i] = gaps.offset();
      const Placed placed = PlacedAt(i, offsets[i]);
      placed_.push_back(placed);
      ++unsorted_;
      if (long_[i]) {
        placed_long_.insert(std::lower_bound(placed_long_.begin(), placed_long_.end(), placed), placed);
      } else {
        index_.Place(i);
      }
    }
  }

 private:
  struct Placed {
    int64_t offset, end, lower, upper;
    bool operator<(const Placed& other) const { return offset < other.offset; }
  };

  Placed PlacedAt(int i, int64_t offset) const {
    return {offset, offset + Aligned(items_[i].size), items_[i].lower, items_[i].upper};
  }

  template <typename Visit>
  void ForEachInTheWay(int i, const std::vector<Placed>& list, Visit visit) const {
    const int64_t lower = items_[i].lower, upper = items_[i].upper;
    for (const Placed& p : list) {
      if (p.lower < upper && lower < p.upper) visit(p);
    }
  }

  // Brings the items placed since the last call into order.
  void SortPlaced() {
    const auto fresh = placed_.end() - unsorted_;
    std::sort(fresh, placed_.end());
    std::inplace_merge(placed_.begin(), fresh, placed_.end());
    unsorted_ = 0;
  }

  // Fills placed_short_ with the short items that are live with item i, by ascending offset.
  void CollectShort(int i, const std::vector<int64_t>& offsets) {
    placed_short_.clear();
    found_.clear();
    index_.PlacedNeighbours(i, found_);
    for (int j : found_) placed_short_.push_back(PlacedAt(j, offsets[j]));
    std::sort(placed_short_.begin(), placed_short_.end());
  }

  const absl::Span<const MemoryItem> items_;
  TimeIndex index_;
  // A long item, during which many others start, walks over all that is placed. A short one asks the index
  // for the short ones in its way and walks over the long ones only.
  std::vector<char> long_;
  std::vector<Placed> placed_;  // sorted but for the last unsorted_
  int unsorted_ = 0;
  std::vector<Placed> placed_long_, placed_short_;
  std::vector<int> found_;
  const int64_t bottom_;
};

int64_t Peak(absl::Span<const MemoryItem> items, const std::vector<int64_t>& offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i < items.size(); ++i) peak = std::max(peak, offsets[i] + Aligned(items[i].size));
  return peak;
}

// The best of four orders, at `bottom` and above.
std::vector<int64_t> SolveGreedily(absl::Span<const MemoryItem> items, int64_t bottom) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  GreedyLayout greedy(items, order, bottom);
  const int64_t bound = bottom + MemoryLowerBound(items);
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

  std::vector<int64_t> offsets(items.size(), 0), best;
  int64_t best_peak = 0;
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
    if (round == 0 || peak < best_peak) {
      best = offsets;
      best_peak = peak;
    }
    if (best_peak == bound) break;
  }
  return best;
}

// Takes a problem apart along time. What lives all the time of a component lies at its bottom, in the given
// order, whatever the rest does: no layout loses by that. What is left may fall into components that share no
// time, each solved by itself.
class LayoutByComponent {
 public:
  LayoutByComponent(absl::Span<const MemoryItem> items, std::vector<int64_t>& offsets)
      : items_(items), offsets_(offsets) {}

  // `members` are live and not empty.
  void Solve(const std::vector<int>& members, int64_t bottom, int depth = 0) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (int i : members) {
      begin = std::min(begin, items_[i].lower);
      end = std::max(end, items_[i].upper);
    }
    std::vector<int> rest;
    for (int i : members) {
      if (items_[i].lower == begin && items_[i].upper == end) {
        offsets_[i] = bottom;
        bottom += Aligned(items_[i].size);
      } else {
        rest.push_back(i);
      }
    }
    const std::vector<std::vector<int>> components = Split(rest);
    const bool splits = components.size() > 1 || rest.size() < members.size();
    for (const std::vector<int>& component : components) {
      if (splits && depth < kMaxDepth) {
        Solve(component, bottom, depth + 1);
      } else {
        Greedy(component, bottom);
      }
    }
  }

 private:
  // Components may lie in each other like Russian dolls; what lies deeper is placed as it comes.
  static constexpr int kMaxDepth = 8;

  // By time; each in the order of `members`.
  std::vector<std::vector<int>> Split(const std::vector<int>& members) const {
    std::vector<int> by_lower = members;
    std::sort(by_lower.begin(), by_lower.end(),
              [&](int a, int b) { return items_[a].lower < items_[b].lower; });
    std::vector<int64_t> starts;
    int64_t end = std::numeric_limits<int64_t>::min();
    for (int i : by_lower) {
      if (items_[i].lower >= end) starts.push_back(items_[i].lower);
      end = std::max(end, items_[i].upper);
    }
    std::vector<std::vector<int>> components(starts.size());
    for (int i : members) {
      const auto after = std::upper_bound(starts.begin(), starts.end(), items_[i].lower);
      components[after - starts.begin() - 1].push_back(i);
    }
    return components;
  }

  void Greedy(const std::vector<int>& component, int64_t bottom) {
    std::vector<MemoryItem> own;
    for (int i : component) own.push_back(items_[i]);
    const std::vector<int64_t> found = SolveGreedily(own, bottom);
    for (size_t k = 0; k < component.size(); ++k) offsets_[component[k]] = found[k];
  }

  const absl::Span<const MemoryItem> items_;
  std::vector<int64_t>& offsets_;
};

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
  std::vector<int> members;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    if (Live(items[i]) && items[i].size > 0) members.push_back(i);  // others are in nobody's way: offset 0
  }
  MemoryLayout layout;
  layout.offsets.resize(items.size(), 0);
  LayoutByComponent(items, layout.offsets).Solve(members, 0);
  layout.peak = Peak(items, layout.offsets);
  return layout;
}

}  // namespace pipec
