#include <gtest/gtest.h>

#include "compiler/partition/solve.h"
#include "small_problems.h"

namespace pipec {
namespace {

TEST(CheckPartition, FindsEveryFault) {
  PartitionProblem problem = Chain({1, 2, 3, 4, 5, 6, 7}, 3, 0.25);
  problem.items[2].glued_to_previous = true;
  problem.tensors.push_back({0, {6}, 2});
  problem.shared.push_back({{1, 5}, 1000});
  for (PartitionItem& item : problem.items) item.parameter_bytes = 100;
  problem.memory_limit = 2000;
  const PartitionSolution good = *SolveFixedOrder(problem);
  ASSERT_TRUE(CheckPartition(problem, good).ok());
  auto caught = [&](auto change) {
    PartitionProblem changed = problem;
    PartitionSolution mutant = good;
    change(changed, mutant);
    EXPECT_FALSE(CheckPartition(changed, mutant).ok());
  };
  const std::vector<int>& stage = good.stage_of;
  for (int i = 0; i < 7; ++i) {
    caught([&](auto&, auto& m) { m.stage_of[i] = -1; });
    caught([&](auto&, auto& m) { m.stage_of[i] = 3; });
    for (int j = 0; j < i; ++j) {
      if (stage[i] != stage[j]) caught([&](auto&, auto& m) { std::swap(m.stage_of[i], m.stage_of[j]); });
      if (stage[i] != stage[j])
        caught([&](auto& p, auto& m) {
          p.tensors.clear();
          p.order = {{j, i}};
          std::swap(m.stage_of[i], m.stage_of[j]);
        });
    }
  }
  for (int s = 0; s < 3; ++s) {
    caught([&](auto&, auto& m) {
      for (int& held : m.stage_of) held = held == s ? (s + 1) % 3 : held;
    });
  }
  caught([](auto&, auto& m) { m.stage_of.pop_back(); });
  caught([](auto&, auto& m) { m.stage_of.push_back(2); });
  caught([](auto&, auto& m) { m.bottleneck *= 1.001; });
  caught([](auto&, auto& m) { m.bottleneck *= 0.999; });
  caught([](auto&, auto& m) { m.lower_bound = m.bottleneck * 1.001; });
  caught([](auto& p, auto&) { p.tensors.back().seconds += 1; });
  caught([](auto& p, auto&) { p.memory_limit = 1100; });
  caught([](auto& p, auto&) { p.memory_limits = {2000, 2000, 10}; });
  caught([](auto& p, auto&) { p.speed = {1, 1, 0.5}; });
  caught([&](auto& p, auto&) { p.items[FirstItems(good)[1]].glued_to_previous = true; });
}

}  // namespace
}  // namespace pipec
