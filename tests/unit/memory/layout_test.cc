#include "compiler/memory/layout.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/memory/brute_force.h"

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

// A full rectangle, cut again and again along time or along addresses: the pieces fit into it without a gap.
std::vector<MemoryItem> CutRectangle(std::mt19937& random, int pieces, int64_t horizon, int64_t height) {
  std::vector<MemoryItem> items = {{0, horizon, height}};
  while (static_cast<int>(items.size()) < pieces) {
    MemoryItem& item = items[random() % items.size()];
    MemoryItem other = item;
    const int64_t width = item.upper - item.lower;
    if (random() % 2 && width > 1) {
      item.upper = other.lower = item.lower + 1 + static_cast<int64_t>(random() % (width - 1));
    } else if (item.size > 64) {
      item.size = 64 * (1 + static_cast<int64_t>(random() % (item.size / 64 - 1)));
      other.size -= item.size;
    } else {
      continue;
    }
    items.push_back(other);
  }
  std::shuffle(items.begin(), items.end(), random);
  return items;
}

std::vector<MemoryItem> ReadProblem(const std::string& name) {
  std::ifstream file(PIPEC_SOURCE_DIR "/tests/data/minimalloc/" + name);
  std::vector<MemoryItem> items;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream cells(line);
    MemoryItem item;
    int id;
    cells >> id >> item.lower >> item.upper >> item.size;
    items.push_back(item);
  }
  return items;
}

TEST(SolveLayout, SmallOnesAgainstBruteForce) {
  std::mt19937 random(1);
  int above_bound = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const auto items =
        round % 8 ? RandomItems(random, 1 + round % 7, 8, 6, 600) : ItemsAboveTheirBound(random);
    const MemoryLayout layout = SolveLayout(items);
    ASSERT_TRUE(Correct(items, layout));
    ASSERT_TRUE(CheckLayout(items, layout).ok()) << CheckLayout(items, layout);
    const int64_t best = BruteForcePeak(items);
    EXPECT_LE(MemoryLowerBound(items), best);
    EXPECT_GE(layout.peak, best);
    EXPECT_LE(layout.peak, best * 101 / 100);
    above_bound += MemoryLowerBound(items) < best;
  }
  EXPECT_GT(above_bound, 20);
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

// Greedy orders leave gaps of several percent here.
TEST(SolveLayout, PerfectPackingsAreFound) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const auto items = CutRectangle(random, 20 + round, 40, 64 * 200);
    const MemoryLayout layout = SolveLayout(items);
    ASSERT_TRUE(Correct(items, layout));
    EXPECT_EQ(MemoryLowerBound(items), 64 * 200);
    EXPECT_LE(layout.peak, 64 * 202) << "round " << round;
    EXPECT_EQ(SolveLayout(items).offsets, layout.offsets);
  }
}

TEST(SolveLayout, PublicProblemsMeetTheirCapacity) {
  for (const char* name : {"B.1048576.csv", "G.1048576.csv"}) {
    const auto items = ReadProblem(name);
    ASSERT_GT(items.size(), 100) << name;
    const MemoryLayout layout = SolveLayout(items);
    EXPECT_TRUE(Correct(items, layout)) << name;
    EXPECT_EQ(layout.peak, 1048576) << name;
  }
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
