#include "compiler/memory/canonical_search.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "tests/unit/memory/brute_force.h"

namespace pipec {
namespace {

using Outcome = CanonicalSearch::Outcome;
constexpr int64_t kEnough = 1'000'000;

std::vector<int> RandomRanks(std::mt19937& random, size_t n) {
  std::vector<int> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  return ranks;
}

void ExpectFits(const std::vector<MemoryItem>& items, const CanonicalSearch& search, int64_t capacity) {
  MemoryLayout layout{search.offsets(), 0};
  for (size_t i = 0; i < items.size(); ++i)
    layout.peak = std::max(layout.peak, (layout.offsets[i] + items[i].size + 63) / 64 * 64);
  EXPECT_LE(layout.peak, capacity);
  EXPECT_TRUE(CheckLayout(items, layout).ok()) << CheckLayout(items, layout);
}

// In every order there is a layout exactly where brute force has one.
TEST(CanonicalSearch, FindsWhatThereIsAndNothingElse) {
  std::mt19937 random(1);
  int above_bound = 0;
  for (int round = 0; round < 600; ++round) {
    auto items = round % 8 ? RandomItems(random, 1 + round % 7, 9, 6, 400) : ItemsAboveTheirBound(random);
    for (MemoryItem& item : items) ++item.size;
    const int64_t best = BruteForcePeak(items), bound = MemoryLowerBound(items);
    above_bound += bound < best;
    CanonicalSearch search(items);
    for (int order = 0; order < 4; ++order) {
      const std::vector<int> ranks = RandomRanks(random, items.size());
      ASSERT_EQ(search.Run(best, ranks, false, kEnough), Outcome::kFound);
      ExpectFits(items, search, best);
      ASSERT_EQ(search.Run(best - kBufferAlignment, ranks, false, kEnough), Outcome::kNone);
      // What jumps may miss a layout, but what it finds is one.
      if (search.Run(best, ranks, true, kEnough) == Outcome::kFound) ExpectFits(items, search, best);
      ASSERT_NE(search.Run(best - kBufferAlignment, ranks, true, kEnough), Outcome::kFound);
    }
  }
  EXPECT_GT(above_bound, 50);
}

TEST(CanonicalSearch, GivesUpAfterItsSteps) {
  std::mt19937 random(2);
  auto items = RandomItems(random, 60, 40, 20, 5000);
  for (MemoryItem& item : items) ++item.size;
  CanonicalSearch search(items);
  const std::vector<int> ranks = RandomRanks(random, items.size());
  EXPECT_EQ(search.Run(MemoryLowerBound(items), ranks, false, 100), Outcome::kGaveUp);
  EXPECT_LE(search.steps(), 100 + static_cast<int64_t>(items.size()));
  EXPECT_EQ(search.Run(10 * MemoryLowerBound(items), ranks, false, kEnough), Outcome::kFound);
}

TEST(CanonicalSearch, WhatOrdersAreMadeOf) {
  //    item 0 |---------|
  //    item 1      |---------|
  //    item 2               |----|
  const std::vector<MemoryItem> items = {{0, 4, 64}, {2, 8, 128}, {8, 9, 64}};
  const CanonicalSearch search(items);
  EXPECT_EQ(search.fullest(0), 192);
  EXPECT_EQ(search.fullest(2), 64);
  EXPECT_EQ(search.sections(0), 2);
  EXPECT_EQ(search.sections(1), 2);
  EXPECT_EQ(search.sections(2), 1);
}

}  // namespace
}  // namespace pipec
