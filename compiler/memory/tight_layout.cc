#include "compiler/memory/tight_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "compiler/memory/aligned.h"
#include "compiler/memory/canonical_search.h"

namespace pipec {
namespace {

// Of the first round of orders: so many get their turn with few steps, and more of them with many.
constexpr int64_t kFewOrders = 8;
constexpr int64_t kStepsOfOrder = 1'000'000;
constexpr int kMixedOrders = 256;
// How many times as long a search without jumps may take.
constexpr int kPatience = 16;

class Orders {
 public:
  explicit Orders(const CanonicalSearch& search, absl::Span<const MemoryItem> items) {
    for (int i = 0; i < static_cast<int>(items.size()); ++i) {
      total_.push_back(std::log(static_cast<double>(search.fullest(i))));
      width_.push_back(std::log(static_cast<double>(search.sections(i))));
      size_.push_back(std::log(static_cast<double>(Aligned(items[i].size))));
    }
  }

  // Items by the fullest time they live in, then by width and area.
  std::vector<int> ByTotal() const {
    return Ranks([&](int i) { return std::tuple(total_[i], width_[i], size_[i]); });
  }
  // By area first.
  std::vector<int> ByArea() const {
    return Ranks([&](int i) { return std::tuple(size_[i] + width_[i], total_[i], width_[i]); });
  }
  // By a product of powers of these; every other one a little shuffled.
  std::vector<int> Mixed(int number) const {
    std::mt19937 random(number);
    const auto pick = [&] { return static_cast<double>(random()) / std::mt19937::max(); };
    const double of_total = pick(), of_width = pick(), of_size = pick(), shuffle = number % 2 ? 0.5 : 0;
    std::vector<double> key;
    for (size_t i = 0; i < size_.size(); ++i) {
      key.push_back(of_total * total_[i] + of_width * width_[i] + of_size * size_[i] + shuffle * pick());
    }
    return Ranks([&](int i) { return std::tuple(key[i]); });
  }

 private:
  // The larger the key, the lower the rank.
  template <typename Key>
  std::vector<int> Ranks(Key key) const {
    std::vector<int> order(size_.size()), ranks(size_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
    for (size_t k = 0; k < order.size(); ++k) ranks[order[k]] = static_cast<int>(k);
    return ranks;
  }

  std::vector<double> total_, width_, size_;  // logarithms
};

CanonicalSearch::Outcome SearchCapacity(CanonicalSearch& search, const Orders& orders, int64_t capacity,
                                        int64_t steps_of_order, int64_t steps) {
  using Outcome = CanonicalSearch::Outcome;
  int64_t left = steps;
  const auto run = [&](const std::vector<int>& ranks, bool jump, int64_t most) {
    const Outcome outcome = search.Run(capacity, ranks, jump, std::min(most, left));
    left -= search.steps();
    return outcome;
  };
  const std::vector<int> by_total = orders.ByTotal(), by_area = orders.ByArea();
  for (int64_t most = steps_of_order; left > 0; most *= 2) {
    for (int k = 0; k < kMixedOrders + 2 && left > 0; ++k) {
      const std::vector<int> ranks = k == 0 ? by_total : k == 1 ? by_area : orders.Mixed(k);
      if (run(ranks, true, most) == Outcome::kFound) return Outcome::kFound;
    }
    // Without jumps it can also find that there is no layout.
    for (const std::vector<int>& ranks : {by_total, by_area}) {
      const Outcome outcome = run(ranks, false, kPatience * most);
      if (outcome != Outcome::kGaveUp) return outcome;
    }
  }
  return Outcome::kGaveUp;
}

}  // namespace

void TightenLayout(absl::Span<const MemoryItem> items, int64_t enough, const LayoutEffort& effort,
                   std::vector<int64_t>& offsets) {
  if (items.size() > CanonicalSearch::kMostItems) return;
  CanonicalSearch search(items);
  const Orders orders(search, items);
  const int64_t bound = MemoryLowerBound(items);
  const int64_t goal = std::max(bound, enough / kBufferAlignment * kBufferAlignment);
  // What of a peak is not worth a search.
  const int64_t grain = std::max<int64_t>(1, (goal - bound) / 4 / kBufferAlignment) * kBufferAlignment;
  const int64_t steps_of_order = std::min(kStepsOfOrder, effort.steps / kFewOrders + 1);
  int64_t peak = PeakOf(items, offsets), too_little = bound - kBufferAlignment;
  const auto is_over = [&] { return peak <= enough || too_little + grain >= peak; };
  const auto try_capacity = [&](int64_t capacity, int64_t steps) {
    if (SearchCapacity(search, orders, capacity, steps_of_order, steps) == CanonicalSearch::Outcome::kFound) {
      offsets = search.offsets();
      peak = PeakOf(items, offsets);
    } else {
      too_little = capacity;
    }
  };
  if (goal > bound && !is_over()) try_capacity(bound, effort.bisection);
  if (!is_over()) try_capacity(goal, effort.steps);
  while (!is_over()) {
    const int64_t units = (peak - too_little) / kBufferAlignment;
    try_capacity(too_little + std::max<int64_t>(units / 2, 1) * kBufferAlignment, effort.bisection);
  }
}

}  // namespace pipec
