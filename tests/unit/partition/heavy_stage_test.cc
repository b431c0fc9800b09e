#include "compiler/partition/heavy_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "compiler/partition/lower_bound.h"
#include "small_problems.h"

namespace pipec {
namespace {

// Of the stages that any set of blocks could be, whether they could or not, the fastest with `block` in it.
double LeastOfSets(const Blocks& blocks, int block, double speed) {
  double least = std::numeric_limits<double>::infinity();
  for (unsigned set = 0; set < 1u << blocks.size(); ++set) {
    if (!(set >> block & 1)) continue;
    double seconds = 0;
    for (int k = 0; k < blocks.size(); ++k) {
      if (set >> k & 1) seconds += blocks.blocks[k].seconds / speed;
    }
    for (const BlockTensor& tensor : blocks.tensors) {
      int inside = set >> tensor.producer & 1;
      for (int consumer : tensor.consumers) inside += set >> consumer & 1;
      if (inside > 0 && inside < tensor.blocks()) seconds += tensor.seconds;
    }
    least = std::min(least, seconds);
  }
  return least;
}

TEST(HeavyStageBound, IsTheFastestStageOfTheSlowestBlock) {
  std::mt19937 random(31);
  int more_than_compute = 0, less_than_alone = 0;
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    const PartitionProblem problem = RandomProblem(random, 8, false, false);
    const Blocks blocks = MakeBlocks(problem);
    const double speed = 1 + round % 3 * 0.5;
    double slowest = 0, heaviest = 0, alone = 0;
    for (int block = 0; block < blocks.size(); ++block) {
      slowest = std::max(slowest, LeastOfSets(blocks, block, speed));
      heaviest = std::max(heaviest, blocks.blocks[block].seconds / speed);
      double messages = 0;
      for (const BlockTensor& tensor : blocks.tensors) {
        const auto& users = tensor.consumers;
        if (tensor.producer == block || std::count(users.begin(), users.end(), block))
          messages += tensor.seconds;
      }
      alone = std::max(alone, blocks.blocks[block].seconds / speed + messages);
    }
    EXPECT_NEAR(HeavyStageBound(blocks, speed, 0), slowest, 1e-9);
    EXPECT_EQ(HeavyStageBound(blocks, speed, slowest + 1), slowest + 1);
    more_than_compute += slowest > heaviest + 1e-9;
    less_than_alone += slowest < alone - 1e-9;
  }
  EXPECT_GT(more_than_compute, 100);
  EXPECT_GT(less_than_alone, 100);
}

// The stage of the heavy block may take its neighbours in, but has then the message behind them.
TEST(HeavyStageBound, ProvesTheCutAroundAHeavyBlock) {
  PartitionProblem problem = Chain({0.5, 0.1, 20, 0.1, 0.1, 0.5}, 4);
  problem.tensors = {{0, {1}, 0.2}, {1, {2}, 0.4}, {2, {3}, 0.4}, {3, {4}, 0.2}, {4, {5}, 0.3}};
  EXPECT_NEAR(PartitionLowerBound(problem, MakeBlocks(problem)), 20 + 0.3 + 0.3, 1e-9);
}

}  // namespace
}  // namespace pipec
