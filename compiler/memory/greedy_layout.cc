#include "compiler/memory/greedy_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "compiler/memory/aligned.h"
#include "compiler/memory/time_index.h"

namespace pipec {
namespace {

// Looks for the smallest gap that holds an item, among what lies in its way, shown by ascending offset.
class GapSearch {
 public:
  explicit GapSearch(int64_t size) : size_(size) {}

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
  int64_t top_ = 0;
  int64_t best_ = -1, best_gap_ = 0;
};

class GreedyLayout {
 public:
  // `members`: the items that Place gets, in any order.
  GreedyLayout(absl::Span<const MemoryItem> items, absl::Span<const int> members)
      : items_(items), index_(items, members), long_(items.size(), false) {
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
      GapSearch gaps(Aligned(items_[i].size));
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
};

}  // namespace

std::vector<int64_t> SolveGreedily(absl::Span<const MemoryItem> items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  GreedyLayout greedy(items, order);
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
    const int64_t peak = PeakOf(items, offsets);
    if (round == 0 || peak < best_peak) {
      best = offsets;
      best_peak = peak;
    }
    if (best_peak == bound) break;
  }
  return best;
}

}  // namespace pipec
