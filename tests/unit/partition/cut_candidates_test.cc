// So many places to cut that not all can be looked at: one item as slow as a third of all others.
#include <gtest/gtest.h>

#include <random>

#include "compiler/partition/solve.h"

namespace pipec {
namespace {

PartitionProblem Lopsided(int n, int stages) {
  std::mt19937 random(1);
  PartitionProblem problem;
  problem.stages = stages;
  for (int i = 0; i < n; ++i) {
    PartitionItem item;
    item.seconds = i == n / 2 ? n / 3.0 : 0.5 + random() % 100 / 100.0;
    item.parameter_bytes = 1000;
    item.activation_bytes = static_cast<int64_t>(random() % 100);
    problem.items.push_back(item);
    if (i > 0) problem.tensors.push_back({i - 1, {i}, random() % 50 / 10.0});
  }
  return problem;
}

TEST(CutCandidates, TheSlowestStageIsNearTheBound) {
  const PartitionProblem problem = Lopsided(60000, 16);
  const absl::StatusOr<PartitionSolution> solution = SolveFixedOrder(problem);
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_TRUE(CheckPartition(problem, *solution).ok()) << CheckPartition(problem, *solution);
  EXPECT_LE(solution->bottleneck, 1.001 * solution->lower_bound);
}

TEST(CutCandidates, MemoryIsRefusedByTheLeastOfAllCuts) {
  PartitionProblem problem = Lopsided(8000, 16);
  problem.memory_limit = 1;
  const absl::Status refusal = SolveFixedOrder(problem).status();
  const std::string message(refusal.message());
  const std::string before = "none needs less than ";
  ASSERT_NE(message.find(before), std::string::npos) << message;
  problem.memory_limit = std::stoll(message.substr(message.find(before) + before.size()));
  const absl::StatusOr<PartitionSolution> tight = SolveFixedOrder(problem);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_TRUE(CheckPartition(problem, *tight).ok()) << CheckPartition(problem, *tight);
  problem.memory_limit -= 1;
  EXPECT_FALSE(SolveFixedOrder(problem).ok());
}

}  // namespace
}  // namespace pipec
