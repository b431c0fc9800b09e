#include "compiler/partition/solve.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "small_problems.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The definition, by brute force: every cut.
struct Best {
  double bottleneck = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  int64_t least_memory = std::numeric_limits<int64_t>::max();  // over all cuts, of the fullest device
};

Best BruteForce(const PartitionProblem& p) {
  Best best;
  ForEachCut(p, Identity(p.items.size()), [&](const std::vector<int>& stage_of) {
    const CutValue value = Value(p, stage_of);
    best.least_memory = std::min(best.least_memory, value.memory);
    if (value.memory > p.memory_limit) return;
    const double slack = 1e-9;
    if (value.bottleneck < best.bottleneck - slack) {
      best.bottleneck = value.bottleneck;
      best.squares = value.squares;
    } else if (value.bottleneck < best.bottleneck + slack) {
      best.squares = std::min(best.squares, value.squares);
    }
  });
  return best;
}

double Squares(const PartitionProblem& problem, const PartitionSolution& solution) {
  double sum = 0;
  for (double load : StageLoads(problem, solution.stage_of)) sum += load * load;
  return sum;
}

int Groups(const PartitionProblem& p) {
  int groups = 0;
  for (size_t i = 0; i < p.items.size(); ++i) groups += i == 0 || !p.items[i].glued_to_previous;
  return groups;
}

TEST(SolveFixedOrder, EqualsBruteForce) {
  std::mt19937 random(7);
  int solved = 0, too_small = 0, too_many = 0;
  for (int round = 0; round < 3000; ++round) {
    const PartitionProblem problem = RandomProblem(random, 9, round % 2, false);
    SCOPED_TRACE(round);
    const auto solution = SolveFixedOrder(problem);
    EXPECT_EQ(MaxStages(problem), Groups(problem));
    if (problem.stages > Groups(problem)) {
      EXPECT_EQ(solution.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(solution.status().message()),
                  HasSubstr(absl::StrCat("at most ", Groups(problem))));
      ++too_many;
      continue;
    }
    const Best best = BruteForce(problem);
    if (best.bottleneck == std::numeric_limits<double>::infinity()) {
      ASSERT_EQ(solution.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(LeastMemoryNamed(solution.status()), best.least_memory);
      ++too_small;
      continue;
    }
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_TRUE(CheckPartition(problem, *solution).ok()) << CheckPartition(problem, *solution);
    EXPECT_NEAR(solution->bottleneck, best.bottleneck, 1e-9);
    EXPECT_NEAR(Squares(problem, *solution), best.squares, 1e-7);
    ++solved;
  }
  EXPECT_GT(solved, 1000);
  EXPECT_GT(too_small, 100);
  EXPECT_GT(too_many, 50);
}

// The same where devices hold several stages.
TEST(SolveFixedOrder, StagesThatShareADevice) {
  std::mt19937 random(8);
  int solved = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    PartitionProblem problem = RandomProblem(random, 9, true, true);
    if (problem.stages > Groups(problem)) continue;
    SCOPED_TRACE(round);
    const Best best = BruteForce(problem);
    const auto solution = SolveFixedOrder(problem);
    if (best.bottleneck == std::numeric_limits<double>::infinity()) {
      ++refused;
      ASSERT_EQ(solution.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(LeastMemoryNamed(solution.status()), best.least_memory);
      continue;
    }
    ++solved;
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_TRUE(CheckPartition(problem, *solution).ok()) << CheckPartition(problem, *solution);
    EXPECT_NEAR(solution->bottleneck, best.bottleneck, 1e-9);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(solved, 500);
}

// No order of the items, however cut, beats the bound.
TEST(SolveFixedOrder, LowerBoundHoldsForEveryOrder) {
  std::mt19937 random(9);
  int tight = 0, better_than_bare = 0;
  for (int round = 0; round < 600; ++round) {
    PartitionProblem problem = RandomProblem(random, 7, false, false);
    for (PartitionItem& item : problem.items) item.glued_to_previous = false;
    SCOPED_TRACE(round);
    const double bound = SolveFixedOrder(problem)->lower_bound;
    double best = std::numeric_limits<double>::infinity(), bare = 0, total = 0;
    for (const PartitionItem& item : problem.items) {
      bare = std::max(bare, item.seconds);
      total += item.seconds;
    }
    bare = std::max(bare, total / problem.stages);
    std::vector<int> order = Identity(problem.items.size());
    do {
      std::vector<int> place(order.size());
      for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
      bool valid = true;
      for (const PartitionTensor& t : problem.tensors) {
        for (int c : t.consumers) valid &= place[t.producer] < place[c];
      }
      if (!valid) continue;
      ForEachCut(problem, order, [&](const std::vector<int>& stage_of) {
        best = std::min(best, Value(problem, stage_of).bottleneck);
      });
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_LE(bound, best + 1e-9);
    EXPECT_GE(bound, bare - 1e-9);
    tight += bound > best - 1e-6;
    better_than_bare += bound > bare + 1e-6;
  }
  EXPECT_GT(tight, 100);
  EXPECT_GT(better_than_bare, 100);
}

TEST(SolveFixedOrder, BoundCountsMessagesOfEveryBoundary) {
  // 32 equal items into 8 stages, each cut a message of 1: inner stages pay two, so 4 + 2; the mean alone
  // says 4.
  const auto solution = SolveFixedOrder(Chain(std::vector<double>(32, 1), 8, 1));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 6);
  EXPECT_GT(solution->lower_bound, 5.7);
}

TEST(SolveFixedOrder, LongerSegmentMayBeCheaper) {
  // The greedy probe stops before the expensive message and fails; the cut behind it costs less.
  PartitionProblem problem = Chain({1, 1, 1, 1}, 2);
  problem.tensors = {{0, {1}, 10}, {1, {2}, 10}, {2, {3}, 0.5}};
  const auto solution = SolveFixedOrder(problem);
  EXPECT_THAT(FirstItems(*solution), ElementsAre(0, 3));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 3.5);
}

TEST(SolveFixedOrder, UsesTheSmoothestOfTheFastest) {
  // The 6 is the bottleneck wherever the rest is cut.
  const auto solution = SolveFixedOrder(Chain({6, 1, 1, 1, 1}, 3));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 6);
  EXPECT_THAT(FirstItems(*solution), ElementsAre(0, 1, 3));
}

TEST(SolveFixedOrder, FortyTwoLayersOnSixteenStages) {
  const auto solution = SolveFixedOrder(Chain(std::vector<double>(42, 1), 16));
  for (int s = 0; s < 16; ++s) {
    const int size = (s + 1 < 16 ? FirstItems(*solution)[s + 1] : 42) - FirstItems(*solution)[s];
    EXPECT_TRUE(size == 2 || size == 3) << size;
  }
  const auto status = SolveFixedOrder(Chain(std::vector<double>(42, 1), 500)).status();
  EXPECT_EQ(status.message(), "cannot cut into 500 stages, at most 42");
  PartitionProblem one = Chain({1, 1}, 1);
  one.memory_limit = 1;
  for (PartitionItem& item : one.items) item.parameter_bytes = 5;
  EXPECT_THAT(std::string(SolveFixedOrder(one).status().message()),
              testing::StartsWith("no cut into 1 stage fits"));
}

TEST(SolveFixedOrder, MoreStagesThanOneWordOfBits) {
  std::mt19937 random(10);
  std::vector<double> seconds(400);
  for (double& s : seconds) s = std::uniform_real_distribution<double>(0.5, 2)(random);
  for (int stages : {63, 64, 65, 130}) {
    const PartitionProblem problem = Chain(seconds, stages);
    const auto solution = SolveFixedOrder(problem);
    ASSERT_TRUE(solution.ok());
    EXPECT_TRUE(CheckPartition(problem, *solution).ok());
    // A chain without messages: the greedy fill needs at most S stages at the bottleneck and more just below.
    auto greedy = [&](double limit) {
      int used = 1;
      double load = 0;
      for (double s : seconds) {
        if (load + s > limit) {
          ++used;
          load = 0;
        }
        load += s;
      }
      return used;
    };
    EXPECT_LE(greedy(solution->bottleneck * (1 + 1e-9)), stages);
    EXPECT_GT(greedy(solution->bottleneck * (1 - 1e-9)), stages);
  }
}

TEST(SolveFixedOrder, MemoryDependsOnThePosition) {
  // Stage 0 keeps two microbatches, stage 1 one: the first must be shorter although time says equal halves.
  PartitionProblem problem = Chain({1, 1, 1, 1, 1, 1}, 2);
  for (PartitionItem& item : problem.items) item.activation_bytes = 10;
  problem.in_flight = {2, 1};
  problem.memory_limit = 45;
  EXPECT_THAT(FirstItems(*SolveFixedOrder(problem)), ElementsAre(0, 2));
  problem.memory_limit = 39;
  const auto status = SolveFixedOrder(problem).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("none needs less than 40 bytes"));
}

TEST(SolveFixedOrder, RefusesWhatIsNoProblem) {
  PartitionProblem backwards = Chain({1, 1}, 2);
  backwards.tensors.push_back({1, {0}, 1});
  EXPECT_EQ(SolveFixedOrder(backwards).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(SolveFixedOrder(Chain({1, 1}, 0)).ok());
  EXPECT_FALSE(SolveFixedOrder(Chain({}, 1)).ok());
  PartitionProblem sizes = Chain({1, 1}, 2);
  sizes.in_flight = {1, 1, 1};
  EXPECT_FALSE(SolveFixedOrder(sizes).ok());
}

// A device with little memory takes little of each of its stages, not as much as one with much.
TEST(SolvePartition, SeveralStagesADeviceWithUnequalMemory) {
  for (const std::vector<int>& rank_of_stage : {std::vector<int>{0, 1, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}}) {
    PartitionProblem problem;
    problem.items.assign(16, {.seconds = 1, .parameter_bytes = 1});
    problem.stages = 4;
    problem.rank_of_stage = rank_of_stage;
    problem.memory_limits = {4, 100};
    for (const bool in_order : {true, false}) {
      const absl::StatusOr<PartitionSolution> solution =
          in_order ? SolveFixedOrder(problem) : SolvePartition(problem);
      ASSERT_TRUE(solution.ok()) << solution.status();
      EXPECT_TRUE(CheckPartition(problem, *solution).ok()) << CheckPartition(problem, *solution);
      EXPECT_EQ(solution->bottleneck, 12);
    }
  }
}

}  // namespace
}  // namespace pipec
