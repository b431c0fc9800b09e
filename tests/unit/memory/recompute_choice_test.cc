#include "compiler/memory/recompute_choice.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace pipec {
namespace {

struct Total {
  double seconds = 0;
  int64_t bytes = 0, remade = 0;
};

Total TotalOf(const std::vector<RecomputeUnit>& units, const std::vector<int>& choice) {
  Total total;
  for (size_t u = 0; u < units.size(); ++u) {
    const RecomputeOption& option = units[u][choice[u]];
    total.seconds += option.seconds;
    total.bytes += option.bytes;
    total.remade = std::max(total.remade, option.remade);
  }
  return total;
}

// Every choice.
std::optional<Total> BruteForce(const std::vector<RecomputeUnit>& units, int64_t budget) {
  std::optional<Total> best;
  std::vector<int> choice(units.size(), 0);
  while (true) {
    const Total total = TotalOf(units, choice);
    if (total.bytes + total.remade <= budget && (!best || total.seconds < best->seconds)) best = total;
    size_t u = 0;
    while (u < units.size() && ++choice[u] == static_cast<int>(units[u].size())) choice[u++] = 0;
    if (u == units.size()) return best;
  }
}

TEST(ChooseRecompute, AsGoodAsEveryChoice) {
  std::mt19937 random(1);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int refused = 0, between = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<RecomputeUnit> units(1 + round % 7);
    int64_t all = 0;
    for (RecomputeUnit& unit : units) {
      const int kept = pick(1, 40), options = pick(1, 3);
      unit.push_back({0, kept, 0});
      all += kept;
      for (int k = 1; k < options; ++k)
        unit.push_back({static_cast<double>(pick(1, 9)), pick(0, kept), pick(0, 30)});
    }
    const int64_t budget = pick(0, static_cast<int>(all) + 10);
    const auto choice = ChooseRecompute(units, budget);
    const auto best = BruteForce(units, budget);
    ASSERT_EQ(choice.has_value(), best.has_value());
    ASSERT_EQ(budget >= LeastRecomputeBudget(units), best.has_value());
    refused += !best;
    if (!best) continue;
    const Total total = TotalOf(units, *choice);
    EXPECT_LE(total.bytes + total.remade, budget);
    EXPECT_DOUBLE_EQ(total.seconds, best->seconds);
    between += best->seconds > 0;
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(between, 200);
}

TEST(ChooseRecompute, NothingIsComputedAgainWhereEverythingFits) {
  const std::vector<RecomputeUnit> units(5, {{0, 100, 0}, {1, 10, 100}});
  EXPECT_EQ(ChooseRecompute(units, 500), std::vector<int>(5, 0));
  // What is remade needs a place too: one unit less than its bytes say.
  EXPECT_EQ(TotalOf(units, *ChooseRecompute(units, 499)).seconds, 2);
  EXPECT_EQ(LeastRecomputeBudget(units), 150);
  EXPECT_EQ(ChooseRecompute(units, 149), std::nullopt);
  EXPECT_EQ(ChooseRecompute({}, 0), std::vector<int>());
}

// Equal layers come down to how many; hundreds of different ones still fit, and cost little more than the relaxation.
TEST(ChooseRecompute, Hundreds) {
  const std::vector<RecomputeUnit> equal(400, {{0, 100, 0}, {1, 10, 0}});
  EXPECT_EQ(TotalOf(equal, *ChooseRecompute(equal, 400 * 100 - 899)).seconds, 10);
  std::mt19937 random(2);
  std::vector<RecomputeUnit> units;
  std::vector<std::pair<double, int64_t>> saves;  // seconds a byte, bytes
  int64_t all = 0;
  for (int u = 0; u < 300; ++u) {
    const int64_t kept = 1000 + random() % 100000;
    const double seconds = 1 + random() % 1000;
    units.push_back({{0, kept, 0}, {seconds, 0, 0}});
    saves.push_back({seconds / kept, kept});
    all += kept;
  }
  const int64_t budget = all / 3;
  const Total total = TotalOf(units, *ChooseRecompute(units, budget));
  EXPECT_LE(total.bytes, budget);
  std::sort(saves.begin(), saves.end());
  double relaxed = 0;
  for (int64_t left = all - budget; const auto& [rate, bytes] : saves) {
    relaxed += rate * std::min(left, bytes);
    left -= std::min(left, bytes);
  }
  EXPECT_LE(total.seconds, 1.02 * relaxed);
}

}  // namespace
}  // namespace pipec
