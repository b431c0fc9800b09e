#include <random>

#include "compiler/partition/solve.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

// Size only: 20,000 items with skips into 32 stages under a memory limit that binds. A solver that looks at
// all pairs would not come back.
TEST(SolveFixedOrder, LargeProblem) {
  std::mt19937 random(11);
  PartitionProblem problem;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    problem.items.push_back({1e-5 * (1 + random() % 100), static_cast<int64_t>(random() % 1000000),
                             static_cast<int64_t>(random() % 10000), false});
  }
  for (int i = 0; i + 1 < n; ++i) {
    std::vector<int> consumers{i + 1};
    if (i % 3 == 0 && i + 6 < n) consumers.push_back(i + 2 + static_cast<int>(random() % 4));
    problem.tensors.push_back({i, consumers, 1e-4});
  }
  problem.stages = 32;
  for (int s = 0; s < 32; ++s) problem.in_flight.push_back(32 - s);
  problem.memory_limit = 400'000'000;
  const auto solution = SolveFixedOrder(problem);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_TRUE(CheckPartition(problem, *solution).ok());
  EXPECT_LT(solution->bottleneck, 1.05 * solution->lower_bound);
}

}  // namespace
}  // namespace pipec
