#include "compiler/memory/layout.h"

#include <algorithm>
#include <limits>

#include "compiler/memory/aligned.h"
#include "compiler/memory/greedy_layout.h"
#include "compiler/memory/tight_layout.h"

namespace pipec {
namespace {

// Peak over bound from which a search may be worth its time.
constexpr double kSmallGap = 1.005;

bool Live(const MemoryItem& item) { return item.lower < item.upper; }

// Takes a problem apart along time. What lives all the time of a component lies at its bottom, in the given
// order, whatever the rest does: no layout loses by that. What is left may fall into components that share no
// time, each solved by itself.
class LayoutByComponent {
 public:
  LayoutByComponent(absl::Span<const MemoryItem> items, const LayoutEffort& effort,
                    std::vector<int64_t>& offsets)
      : items_(items), effort_(effort), bound_(MemoryLowerBound(items)), offsets_(offsets) {}

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
        Place(component, bottom);
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

  void Place(const std::vector<int>& component, int64_t bottom) {
    std::vector<MemoryItem> own;
    for (int i : component) own.push_back(items_[i]);
    std::vector<int64_t> found = SolveGreedily(own);
    // Only the highest component counts.
    const auto bound = static_cast<double>(effort_.below + bound_);
    const int64_t under = effort_.below + bottom;
    if (effort_.steps > 0 && under + PeakOf(own, found) > kSmallGap * bound)
      TightenLayout(own, static_cast<int64_t>(effort_.enough * bound) - under, effort_, found);
    for (size_t k = 0; k < component.size(); ++k) offsets_[component[k]] = bottom + found[k];
  }

  const absl::Span<const MemoryItem> items_;
  const LayoutEffort effort_;
  const int64_t bound_;
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

MemoryLayout SolveLayout(absl::Span<const MemoryItem> items, const LayoutEffort& effort) {
  std::vector<int> members;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    if (Live(items[i]) && items[i].size > 0) members.push_back(i);  // others are in nobody's way: offset 0
  }
  MemoryLayout layout;
  layout.offsets.resize(items.size(), 0);
  LayoutByComponent(items, effort, layout.offsets).Solve(members, 0);
  layout.peak = PeakOf(items, layout.offsets);
  return layout;
}

}  // namespace pipec
