#include "compiler/partition/solve.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Chain of items with the given seconds, a tensor between neighbours.
PartitionProblem Chain(const std::vector<double>& seconds, int stages, double message = 0) {
  PartitionProblem problem;
  problem.stages = stages;
  for (double s : seconds) problem.items.push_back({s, 0, 0, false});
  for (int i = 0; i + 1 < static_cast<int>(seconds.size()); ++i)
    problem.tensors.push_back({i, {i + 1}, message});
  return problem;
}

PartitionProblem RandomProblem(std::mt19937& random, int most_items, bool memory, bool devices_shared) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  PartitionProblem problem;
  const int n = pick(1, most_items);
  for (int i = 0; i < n; ++i) {
    problem.items.push_back({pick(0, 20) * 0.37, pick(0, 50), pick(0, 20), i > 0 && pick(0, 5) == 0});
  }
  for (int i = 0; i + 1 < n; ++i) {
    for (int copies = pick(0, 2); copies > 0; --copies) {
      std::vector<int> consumers;
      for (int c = i + 1; c < n; ++c) {
        if (pick(0, 2) == 0) consumers.push_back(c);
      }
      if (!consumers.empty()) problem.tensors.push_back({i, consumers, pick(0, 10) * 0.53});
    }
  }
  for (int k = pick(0, 2); k > 0; --k) {
    std::vector<int> items;
    for (int i = 0; i < n; ++i) {
      if (pick(0, 2) == 0) items.push_back(i);
    }
    problem.shared.push_back({items, pick(0, 60)});
  }
  problem.stages = pick(1, std::min(n, 5));
  if (devices_shared) problem.stages = std::min(n, 4);
  if (memory) {
    for (int s = 0; s < problem.stages; ++s) problem.in_flight.push_back(pick(1, 4));
    for (int s = 0; s < problem.stages; ++s) problem.rank_of_stage.push_back(devices_shared ? s % 2 : s);
    problem.memory_limit = pick(20, 400);
  }
  return problem;
}

// The definition, by brute force: every cut.
struct Best {
  double bottleneck = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  int64_t least_memory = std::numeric_limits<int64_t>::max();  // over all cuts, of the fullest device
};

struct CutValue {
  double bottleneck = 0, squares = 0;
  int64_t memory = 0;
};

CutValue Value(const PartitionProblem& p, const std::vector<int>& stage_of) {
  CutValue value;
  std::vector<double> loads(p.stages, 0);
  std::vector<int64_t> bytes(p.stages, 0), devices(p.stages, 0);
  for (size_t i = 0; i < p.items.size(); ++i) {
    const int s = stage_of[i];
    loads[s] += p.items[i].seconds;
    bytes[s] +=
        p.items[i].parameter_bytes + (p.in_flight.empty() ? 1 : p.in_flight[s]) * p.items[i].activation_bytes;
  }
  for (int s = 0; s < p.stages; ++s) {
    for (const PartitionTensor& t : p.tensors) {
      bool used_here = false, used_elsewhere = false;
      for (int c : t.consumers) (stage_of[c] == s ? used_here : used_elsewhere) = true;
      if (stage_of[t.producer] == s ? used_elsewhere : used_here) loads[s] += t.seconds;
    }
    for (const PartitionShared& shared : p.shared) {
      bool here = false;
      for (int i : shared.items) here |= stage_of[i] == s;
      if (here) bytes[s] += shared.bytes;
    }
    value.bottleneck = std::max(value.bottleneck, loads[s]);
    value.squares += loads[s] * loads[s];
    devices[p.rank_of_stage.empty() ? s : p.rank_of_stage[s]] += bytes[s];
  }
  value.memory = *std::max_element(devices.begin(), devices.end());
  return value;
}

// Calls `visit` with the stage of every item for each way to cut items in this order into p.stages stages.
void ForEachCut(const PartitionProblem& p, const std::vector<int>& order,
                const std::function<void(const std::vector<int>&)>& visit) {
  const int n = p.items.size();
  std::vector<int> stage_of(n, 0);
  std::function<void(int, int)> place = [&](int k, int stage) {
    if (k == n) {
      if (stage == p.stages - 1) visit(stage_of);
      return;
    }
    stage_of[order[k]] = stage;
    place(k + 1, stage);
    if (k > 0 && stage + 1 < p.stages && !p.items[order[k]].glued_to_previous) {
      stage_of[order[k]] = stage + 1;
      place(k + 1, stage + 1);
    }
  };
  place(0, 0);
}

std::vector<int> Identity(int n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

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
  for (double load : StageLoads(problem, solution.first_item)) sum += load * load;
  return sum;
}

int Groups(const PartitionProblem& p) {
  int groups = 0;
  for (size_t i = 0; i < p.items.size(); ++i) groups += i == 0 || !p.items[i].glued_to_previous;
  return groups;
}

int64_t LeastMemoryNamed(const absl::Status& status) {
  const std::string text(status.message());
  return std::stoll(text.substr(text.find("do is ") + 6));
}

TEST(SolvePartition, EqualsBruteForce) {
  std::mt19937 random(7);
  int solved = 0, too_small = 0, too_many = 0;
  for (int round = 0; round < 3000; ++round) {
    const PartitionProblem problem = RandomProblem(random, 9, round % 2, false);
    SCOPED_TRACE(round);
    const auto solution = SolvePartition(problem);
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

// Several stages a device: what is found fits, is never better than the best, is the best whenever the best
// cut without regard to sums fits, and the least memory that is named does do.
TEST(SolvePartition, StagesThatShareADevice) {
  std::mt19937 random(8);
  int solved = 0, refused = 0, best_found = 0;
  for (int round = 0; round < 2000; ++round) {
    PartitionProblem problem = RandomProblem(random, 9, true, true);
    if (problem.stages > Groups(problem)) continue;
    SCOPED_TRACE(round);
    const Best best = BruteForce(problem);
    auto solution = SolvePartition(problem);
    if (!solution.ok()) {
      ++refused;
      ASSERT_EQ(solution.status().code(), absl::StatusCode::kResourceExhausted);
      const int64_t least = LeastMemoryNamed(solution.status());
      EXPECT_GE(least, best.least_memory);
      problem.memory_limit = least;
      solution = SolvePartition(problem);
      ASSERT_TRUE(solution.ok()) << solution.status();
    } else {
      ++solved;
      EXPECT_GE(solution->bottleneck, best.bottleneck - 1e-9);
      best_found += solution->bottleneck < best.bottleneck + 1e-9;
    }
    EXPECT_TRUE(CheckPartition(problem, *solution).ok()) << CheckPartition(problem, *solution);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(solved, 500);
  EXPECT_GT(best_found, solved * 9 / 10);
}

// No order of the items, however cut, beats the bound.
TEST(SolvePartition, LowerBoundHoldsForEveryOrder) {
  std::mt19937 random(9);
  int tight = 0, better_than_bare = 0;
  for (int round = 0; round < 600; ++round) {
    PartitionProblem problem = RandomProblem(random, 7, false, false);
    for (PartitionItem& item : problem.items) item.glued_to_previous = false;
    SCOPED_TRACE(round);
    const double bound = SolvePartition(problem)->lower_bound;
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

TEST(SolvePartition, BoundCountsMessagesOfEveryBoundary) {
  // 32 equal items into 8 stages, each cut a message of 1: inner stages pay two, so 4 + 2; the mean alone
  // says 4.
  const auto solution = SolvePartition(Chain(std::vector<double>(32, 1), 8, 1));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 6);
  EXPECT_GT(solution->lower_bound, 5.7);
}

TEST(SolvePartition, LongerSegmentMayBeCheaper) {
  // The greedy probe stops before the expensive message and fails; the cut behind it costs less.
  PartitionProblem problem = Chain({1, 1, 1, 1}, 2);
  problem.tensors = {{0, {1}, 10}, {1, {2}, 10}, {2, {3}, 0.5}};
  const auto solution = SolvePartition(problem);
  EXPECT_THAT(solution->first_item, ElementsAre(0, 3));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 3.5);
}

TEST(SolvePartition, UsesTheSmoothestOfTheFastest) {
  // The 6 is the bottleneck wherever the rest is cut.
  const auto solution = SolvePartition(Chain({6, 1, 1, 1, 1}, 3));
  EXPECT_DOUBLE_EQ(solution->bottleneck, 6);
  EXPECT_THAT(solution->first_item, ElementsAre(0, 1, 3));
}

TEST(SolvePartition, FortyTwoLayersOnSixteenStages) {
  const auto solution = SolvePartition(Chain(std::vector<double>(42, 1), 16));
  for (int s = 0; s < 16; ++s) {
    const int size = (s + 1 < 16 ? solution->first_item[s + 1] : 42) - solution->first_item[s];
    EXPECT_TRUE(size == 2 || size == 3) << size;
  }
  const auto status = SolvePartition(Chain(std::vector<double>(42, 1), 500)).status();
  EXPECT_EQ(status.message(), "cannot cut into 500 stages, at most 42");
}

TEST(SolvePartition, MoreStagesThanOneWordOfBits) {
  std::mt19937 random(10);
  std::vector<double> seconds(400);
  for (double& s : seconds) s = std::uniform_real_distribution<double>(0.5, 2)(random);
  for (int stages : {63, 64, 65, 130}) {
    const PartitionProblem problem = Chain(seconds, stages);
    const auto solution = SolvePartition(problem);
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

TEST(SolvePartition, MemoryDependsOnThePosition) {
  // Stage 0 keeps two microbatches, stage 1 one: the first must be shorter although time says equal halves.
  PartitionProblem problem = Chain({1, 1, 1, 1, 1, 1}, 2);
  for (PartitionItem& item : problem.items) item.activation_bytes = 10;
  problem.in_flight = {2, 1};
  problem.memory_limit = 45;
  EXPECT_THAT(SolvePartition(problem)->first_item, ElementsAre(0, 2));
  problem.memory_limit = 39;
  const auto status = SolvePartition(problem).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the least that would do is 40 bytes"));
}

TEST(SolvePartition, RefusesWhatIsNoProblem) {
  PartitionProblem backwards = Chain({1, 1}, 2);
  backwards.tensors.push_back({1, {0}, 1});
  EXPECT_EQ(SolvePartition(backwards).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(SolvePartition(Chain({1, 1}, 0)).ok());
  EXPECT_FALSE(SolvePartition(Chain({}, 1)).ok());
  PartitionProblem sizes = Chain({1, 1}, 2);
  sizes.in_flight = {1, 1, 1};
  EXPECT_FALSE(SolvePartition(sizes).ok());
}

TEST(CheckPartition, FindsEveryFault) {
  PartitionProblem problem = Chain({1, 2, 3, 4, 5, 6, 7}, 3, 0.25);
  problem.items[2].glued_to_previous = true;
  problem.tensors.push_back({0, {6}, 2});
  problem.shared.push_back({{1, 5}, 1000});
  for (PartitionItem& item : problem.items) item.parameter_bytes = 100;
  problem.memory_limit = 2000;
  const PartitionSolution good = *SolvePartition(problem);
  ASSERT_TRUE(CheckPartition(problem, good).ok());
  auto caught = [&](auto change) {
    PartitionProblem changed = problem;
    PartitionSolution mutant = good;
    change(changed, mutant);
    EXPECT_FALSE(CheckPartition(changed, mutant).ok());
  };
  for (int s = 0; s < 3; ++s) {
    for (int shift : {-3, -2, -1, 1, 2, 3}) caught([&](auto&, auto& m) { m.first_item[s] += shift; });
  }
  caught([](auto&, auto& m) { std::swap(m.first_item[1], m.first_item[2]); });
  caught([](auto&, auto& m) { m.first_item.pop_back(); });
  caught([](auto&, auto& m) { m.first_item.push_back(6); });
  caught([](auto&, auto& m) { m.first_item[2] = m.first_item[1]; });
  caught([](auto&, auto& m) { m.bottleneck *= 1.001; });
  caught([](auto&, auto& m) { m.bottleneck *= 0.999; });
  caught([](auto&, auto& m) { m.lower_bound = m.bottleneck * 1.001; });
  caught([](auto& p, auto&) { p.tensors.back().seconds += 1; });
  caught([](auto& p, auto&) { p.memory_limit = 1100; });
  caught([&](auto& p, auto&) { p.items[good.first_item[1]].glued_to_previous = true; });
}

}  // namespace
}  // namespace pipec
