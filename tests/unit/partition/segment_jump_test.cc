// Two ways to the same numbers: what is summed up in advance, and the definition.
#include "compiler/partition/segment_jump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "compiler/partition/ancestors.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

int Pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

PartitionProblem RandomProblem(std::mt19937& random, int most_items) {
  PartitionProblem problem;
  const int n = Pick(random, 1, most_items);
  for (int i = 0; i < n; ++i) {
    problem.items.push_back({Pick(random, 0, 20) * 0.37, Pick(random, 0, 50), Pick(random, 0, 20),
                             i > 0 && Pick(random, 0, 5) == 0});
    problem.items.back().remake[i % kRemakeKinds] = {Pick(random, 0, 20), Pick(random, 0, 10) * 0.29};
  }
  for (int i = 0; i + 1 < n; ++i) {
    for (int copies = Pick(random, 0, 2); copies > 0; --copies) {
      std::vector<int> consumers;
      const int rarity = Pick(random, 1, 30);
      for (int c = i + 1; c < n; ++c) {
        if (Pick(random, 0, rarity) == 0) consumers.push_back(c);
      }
      if (!consumers.empty()) problem.tensors.push_back({i, consumers, Pick(random, 0, 10) * 0.53});
    }
    if (Pick(random, 0, 3) == 0) problem.tensors.resize(problem.tensors.size() * 3 / 4);
  }
  for (int k = Pick(random, 0, 3); k > 0; --k) {
    std::vector<int> items;
    for (int i = 0; i < n; ++i) {
      if (Pick(random, 0, 8) == 0) items.push_back(i);
    }
    problem.shared.push_back({items, Pick(random, 0, 60), Pick(random, 0, 60)});
  }
  return problem;
}

void ExpectSame(const Segment& a, const Segment& b) {
  EXPECT_EQ(a.end(), b.end());
  EXPECT_NEAR(a.cost().compute, b.cost().compute, 1e-11);
  EXPECT_NEAR(a.cost().messages, b.cost().messages, 1e-11);
  EXPECT_EQ(a.cost().bytes.parameters, b.cost().bytes.parameters);
  EXPECT_EQ(a.cost().bytes.weights, b.cost().bytes.weights);
  EXPECT_EQ(a.cost().bytes.activations, b.cost().bytes.activations);
  for (int k = 0; k < kRemakeKinds; ++k) {
    EXPECT_EQ(a.cost().remake.bytes[k], b.cost().remake.bytes[k]);
    EXPECT_NEAR(a.cost().remake.seconds[k], b.cost().remake.seconds[k], 1e-11);
  }
}

TEST(SegmentJump, CostsWhatGrowingCosts) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    const Blocks blocks = MakeBlocks(RandomProblem(random, 60));
    const int n = blocks.size();
    SegmentJump jump(blocks);
    for (int k = 0; k < 30; ++k) {  // back and forth
      const int begin = Pick(random, 0, n - 1), end = Pick(random, begin, n);
      SCOPED_TRACE(testing::Message() << "round " << round << ": [" << begin << ", " << end << ")");
      Segment grown(blocks, begin), jumped = jump.Make(begin, end);
      while (grown.end() < end) grown.Grow();
      ExpectSame(jumped, grown);
      while (grown.end() < n) {
        grown.Grow();
        jumped.Grow();
      }
      ExpectSame(jumped, grown);
    }
  }
}

// Over the cuts of every stage within `limit` the least bottleneck, or the least sum of squares.
double Table(const PartitionProblem& problem, const Blocks& blocks, double limit, bool squares) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int n = blocks.size();
  std::vector<double> best(n + 1, kInfinity);
  best[0] = 0;
  for (int s = 0; s < problem.stages; ++s) {
    std::vector<double> next(n + 1, kInfinity);
    for (int i = 0; i < n; ++i) {
      for (Segment segment(blocks, i); best[i] < kInfinity && segment.end() < n;) {
        segment.Grow();
        const double seconds = segment.cost().compute + segment.cost().messages;
        const HeldBytes& held = segment.cost().bytes;
        const int64_t bytes = held.parameters + held.weights + problem.in_flight[s] * held.activations;
        if (bytes > problem.memory_limit || seconds > limit) continue;
        double& there = next[segment.end()];
        there = std::min(there, squares ? best[i] + seconds * seconds : std::max(best[i], seconds));
      }
    }
    best = next;
  }
  return best[n];
}

TEST(SolveFixedOrder, EqualsATableOverAllSegments) {
  std::mt19937 random(5);
  int solved = 0, refused = 0;
  for (int round = 0; round < 300; ++round) {
    PartitionProblem problem = RandomProblem(random, 150);
    for (PartitionItem& item : problem.items) item.remake = {};
    const Blocks blocks = MakeBlocks(problem);
    problem.stages = Pick(random, 1, std::min(blocks.size(), 12));
    for (int s = 0; s < problem.stages; ++s) problem.in_flight.push_back(Pick(random, 1, 4));
    if (round % 2) problem.memory_limit = Pick(random, 100, 20000) / problem.stages;
    SCOPED_TRACE(testing::Message() << "round " << round);
    const double bottleneck = Table(problem, blocks, 1e9, false);
    const absl::StatusOr<PartitionSolution> solution = SolveFixedOrder(problem);
    ASSERT_EQ(solution.ok(), bottleneck < 1e9) << solution.status();
    if (!solution.ok()) {
      ++refused;
      continue;
    }
    ++solved;
    EXPECT_NEAR(solution->bottleneck, bottleneck, 1e-9);
    double squares = 0;
    for (double load : StageLoads(problem, solution->stage_of)) squares += load * load;
    EXPECT_NEAR(squares, Table(problem, blocks, bottleneck + 1e-9, true), 1e-9 * squares);
  }
  EXPECT_GT(solved, 150);
  EXPECT_GT(refused, 20);
}

TEST(SumAncestors, CountsEveryAncestorOnce) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const int n = Pick(random, 1, 330);
    // From chains with a side branch now and then to graphs with many dead ends.
    const int farthest = Pick(random, 1, 40), no_parent = Pick(random, 3, 200);
    std::vector<std::vector<int>> parents(n);
    std::vector<double> seconds(n);
    std::vector<std::vector<char>> leads(n, std::vector<char>(n, 0));
    for (int i = 0; i < n; ++i) {
      seconds[i] = Pick(random, 0, 9);
      leads[i][i] = 1;
      for (int k = Pick(random, 1, 3); i > 0 && k > 0 && Pick(random, 0, no_parent) > 0; --k) {
        const int parent = k == 1 ? i - 1 : std::max(0, i - Pick(random, 1, farthest));
        parents[i].push_back(parent);
        for (int a = 0; a < i; ++a) leads[i][a] |= leads[parent][a];
      }
    }
    const Ancestry sums = SumAncestors(parents, seconds);
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      int count = 0;
      for (int a = 0; a <= i; ++a) {
        count += leads[i][a];
        sum += leads[i][a] * seconds[a];
      }
      ASSERT_EQ(sums.blocks[i], count) << "round " << round << " block " << i << " of " << n;
      ASSERT_EQ(sums.seconds[i], sum) << "round " << round << " block " << i << " of " << n;
    }
  }
}

}  // namespace
}  // namespace pipec
