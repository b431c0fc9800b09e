#include "compiler/memory/layout.h"

#include <algorithm>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

// The definition: all pairs.
bool Correct(const std::vector<MemoryItem>& items, const MemoryLayout& layout) {
  int64_t peak = 0;
  for (size_t a = 0; a < items.size(); ++a) {
    const int64_t offset = layout.offsets[a], end = offset + items[a].size;
    if (offset < 0 || offset % 64 != 0) return false;
    peak = std::max(peak, (end + 63) / 64 * 64);
    for (size_t b = 0; b < a; ++b) {
      const bool same_time =
          std::max(items[a].lower, items[b].lower) < std::min(items[a].upper, items[b].upper);
      const bool same_place =
          std::max(offset, layout.offsets[b]) < std::min(end, layout.offsets[b] + items[b].size);
      if (same_time && same_place) return false;
    }
  }
  return peak == layout.peak;
}

std::vector<MemoryItem> RandomItems(std::mt19937& random, int n, int horizon, int longest, int largest) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<MemoryItem> items;
  for (int i = 0; i < n; ++i) {
    const int lower = pick(0, horizon - 1);
    items.push_back({lower, std::min<int64_t>(horizon, lower + pick(1, longest)), pick(0, largest)});
  }
  return items;
}

// The least peak: some optimal layout stacks every item on another or on the floor, so it is found by placing
// the items in every order, each at its lowest place.
int64_t BruteForcePeak(const std::vector<MemoryItem>& items) {
  std::vector<int> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(items.size());
    int64_t peak = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const MemoryItem& item = items[order[k]];
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < k; ++j) {
          const MemoryItem& other = items[order[j]];
          const int64_t end = offsets[order[j]] + (other.size + 63) / 64 * 64;
          if (other.lower < item.upper && item.lower < other.upper && offset < end &&
              offsets[order[j]] < offset + item.size) {
            offset = end;
            moved = true;
          }
        }
      }
      offsets[order[k]] = offset;
      peak = std::max(peak, offset + (item.size + 63) / 64 * 64);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(SolveLayout, SmallOnesAgainstBruteForce) {
  std::mt19937 random(1);
  int optimal = 0, bound_tight = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const auto items = RandomItems(random, 1 + round % 7, 8, 6, 600);
    const MemoryLayout layout = SolveLayout(items);
    ASSERT_TRUE(Correct(items, layout));
    ASSERT_TRUE(CheckLayout(items, layout).ok()) << CheckLayout(items, layout);
    const int64_t best = BruteForcePeak(items);
    EXPECT_LE(MemoryLowerBound(items), best);
    EXPECT_GE(layout.peak, best);
    EXPECT_LE(layout.peak, best * 5 / 4);
    optimal += layout.peak == best;
    bound_tight += MemoryLowerBound(items) == best;
  }
  EXPECT_GT(optimal, rounds * 95 / 100);
  EXPECT_GT(bound_tight, rounds * 9 / 10);
}

TEST(SolveLayout, RandomOnesAreCorrectAndNearTheBound) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    const auto items = RandomItems(random, 300, 100, round % 2 ? 10 : 100, 5000);
    const MemoryLayout layout = SolveLayout(items);
    ASSERT_TRUE(Correct(items, layout));
    EXPECT_LE(layout.peak, 1.2 * MemoryLowerBound(items));
  }
}

// Forward activations that die in reverse order, as training makes them: the greedy orders reach the bound.
TEST(SolveLayout, ForwardAndBackwardReachTheBound) {
  std::vector<MemoryItem> items;
  const int layers = 200;
  for (int k = 0; k < layers; ++k) {
    items.push_back({k, 2 * layers - k, 1000 + 37 * (k % 5)});                       // activation
    items.push_back({2 * layers - k - 1, 2 * layers - k + 1, 1000 + 37 * (k % 5)});  // gradient
    items.push_back({0, 2 * layers + 1, 4096});                                      // parameter
  }
  const MemoryLayout layout = SolveLayout(items);
  EXPECT_TRUE(Correct(items, layout));
  EXPECT_LE(layout.peak, 1.02 * MemoryLowerBound(items));
}

TEST(SolveLayout, EdgeCases) {
  EXPECT_EQ(SolveLayout({}).peak, 0);
  // One ends when the other starts; sizes are rounded up; nothing live and nothing large lie anywhere.
  const std::vector<MemoryItem> items = {{0, 5, 100}, {5, 9, 128}, {2, 7, 0}, {3, 3, 64}};
  const MemoryLayout layout = SolveLayout(items);
  EXPECT_TRUE(CheckLayout(items, layout).ok());
  EXPECT_EQ(layout.peak, 128);
  EXPECT_EQ(MemoryLowerBound(items), 128);
  EXPECT_EQ(MemoryLowerBound({{{0, 5, 100}, {4, 9, 1}}}), 192);
}

// Random changes of a correct layout: the checker says what all pairs say.
TEST(CheckLayout, AgreesWithAllPairsOnMutants) {
  std::mt19937 random(3);
  int wrong = 0, right = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto items = RandomItems(random, 12, 12, 6, 300);
    MemoryLayout layout = SolveLayout(items);
    const int a = random() % items.size(), b = random() % items.size();
    switch (round % 5) {
      case 0:
        layout.offsets[a] += 64 * (1 + random() % 4);
        break;
      case 1:
        layout.offsets[a] -= 64 * (1 + random() % 4);
        break;
      case 2:
        std::swap(layout.offsets[a], layout.offsets[b]);
        break;
      case 3:
        layout.offsets[a] += 32;
        break;
      case 4:
        layout.peak += 64;
        break;
    }
    if (round % 5 < 3 && round % 2) {  // keep the peak right, so that only overlaps are left to find
      layout.peak = 0;
      for (size_t i = 0; i < items.size(); ++i) {
        layout.peak = std::max(layout.peak, layout.offsets[i] + (items[i].size + 63) / 64 * 64);
      }
    }
    const bool correct = Correct(items, layout);
    EXPECT_EQ(CheckLayout(items, layout).ok(), correct) << CheckLayout(items, layout);
    ++(correct ? right : wrong);
  }
  EXPECT_GT(wrong, 1000);
  EXPECT_GT(right, 100);
}

TEST(CheckLayout, WrongNumberOfOffsets) {
  EXPECT_FALSE(CheckLayout({{{0, 1, 64}}}, MemoryLayout{{}, 64}).ok());
}

// 20,000 items, most of them short, some of them permanent.
TEST(SolveLayout, LargeProblem) {
  std::mt19937 random(4);
  auto items = RandomItems(random, 20000, 40000, 60, 100000);
  for (int i = 0; i < 2000; ++i) items[i] = {0, 40060, 4096};
  for (int i = 2000; i < 2500; ++i) items[i].upper = items[i].lower + 2000;
  const MemoryLayout layout = SolveLayout(items);
  EXPECT_TRUE(CheckLayout(items, layout).ok());
  EXPECT_LE(layout.peak, 1.1 * MemoryLowerBound(items));
}

}  // namespace
}  // namespace pipec
