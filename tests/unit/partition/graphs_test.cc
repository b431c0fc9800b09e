// Any graph: what is solved against all assignments of items to stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "compiler/partition/solve.h"
#include "small_problems.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Up to 14 items: skips, gradients that only cost, glue, shared parameters, weight versions, what can be made again,
// devices of other speed and memory.
// With virtual_stages > 1 so many on each device, in loop or V placement.
PartitionProblem RandomGraph(std::mt19937& random, int virtual_stages, int most_items = 14) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  PartitionProblem problem;
  const int n = pick(1, most_items);
  for (int i = 0; i < n; ++i)
    problem.items.push_back({pick(0, 20) * 0.37, pick(0, 50), pick(0, 20), i > 0 && pick(0, 9) == 0});
  const int rarity = pick(2, 9), dear = pick(0, 1) ? 12 : 3;
  for (int i = 0; i + 1 < n; ++i) {
    for (int copies = pick(0, 2); copies > 0; --copies) {
      std::vector<int> consumers;
      for (int c = i + 1; c < n; ++c) {
        if (pick(0, c < i + 4 ? rarity / 2 : rarity) == 0) consumers.push_back(c);
      }
      if (!consumers.empty()) problem.tensors.push_back({i, consumers, pick(0, dear) * 0.53, pick(0, 4) > 0});
    }
    if (pick(0, 3) == 0) problem.order.emplace_back(i, pick(i + 1, n - 1));
  }
  for (int k = pick(0, 2); k > 0; --k) {
    problem.shared.push_back({{}, pick(0, 60)});
    for (int i = 0; i < n; ++i) {
      if (pick(0, 4) == 0) problem.shared.back().items.push_back(i);
    }
  }
  const int most_stages = virtual_stages == 1 ? (n > 10 ? 3 : 4) : (n > 11 ? 4 : 6);
  const int ranks = pick(1, std::min(n, most_stages / virtual_stages));
  const bool turns = pick(0, 1);
  problem.stages = ranks * virtual_stages;
  for (int s = 0; s < problem.stages; ++s) {
    problem.in_flight.push_back(pick(1, 4));
    problem.versions.push_back(pick(1, 3));
    if (virtual_stages > 1)
      problem.rank_of_stage.push_back(turns && s / ranks % 2 ? ranks - 1 - s % ranks : s % ranks);
  }
  if (pick(0, 1)) {
    for (int rank = 0; rank < ranks; ++rank) problem.speed.push_back(pick(2, 6) / 4.0);
  }
  if (pick(0, 1)) {
    for (PartitionItem& item : problem.items) item.weight_bytes = pick(0, 20);
    for (PartitionShared& shared : problem.shared) shared.weight_bytes = pick(0, 20);
  }
  if (pick(0, 1)) {
    for (PartitionItem& item : problem.items) {
      const int kind = pick(0, kRemakeKinds);
      if (kind < kRemakeKinds) item.remake[kind] = {pick(0, 40), pick(0, 10) * 0.29};
    }
  }
  if (pick(0, 2) == 0) problem.memory_limit = pick(100, 900) / ranks;
  if (pick(0, 2) == 0) {
    for (int rank = 0; rank < ranks; ++rank) problem.memory_limits.push_back(pick(100, 900) / ranks);
  }
  return problem;
}

double Time(const PartitionProblem& p, const CutValue& value) {
  return p.microbatches == 0 ? value.bottleneck : value.sum + (p.microbatches - 1) * value.bottleneck;
}

// Over all assignments of items to stages; those of which compute and messages so far, or memory alone, are too
// much are left out early.
double BruteForceTime(const PartitionProblem& p) {
  const int n = p.items.size();
  std::vector<std::vector<int>> before(n);
  std::vector<std::vector<const PartitionTensor*>> complete(n);  // by the last item of the tensor
  for (const PartitionTensor& t : p.tensors) {
    for (int c : t.consumers) {
      if (t.ordered) before[c].push_back(t.producer);
    }
    complete[t.consumers.back()].push_back(&t);
  }
  for (const auto& [first, second] : p.order) before[second].push_back(first);
  double best = kInfinity;
  std::vector<int> stage_of(n), held(p.stages, 0);
  const auto device_of = [&](int s) { return p.rank_of_stage.empty() ? s : p.rank_of_stage[s]; };
  std::vector<int> stages;
  // Of the tensors that item i completes, to each stage of them.
  const auto add_messages = [&](int i, double sign, std::vector<double>& seconds) {
    for (const PartitionTensor* t : complete[i]) {
      stages = {stage_of[t->producer]};
      for (int c : t->consumers) stages.push_back(stage_of[c]);
      std::sort(stages.begin(), stages.end());
      stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
      if (stages.size() == 1) continue;
      for (int s : stages) seconds[device_of(s)] += sign * t->seconds;
    }
  };
  std::vector<double> seconds(p.stages, 0);  // by device
  std::vector<int64_t> bytes(p.stages, 0);   // likewise
  std::function<void(int)> place = [&](int i) {
    if (i == n) {
      if (*std::min_element(held.begin(), held.end()) == 0) return;
      const CutValue value = Value(p, stage_of);
      if (value.fits) best = std::min(best, Time(p, value));
      return;
    }
    int first = 0, last = p.stages - 1;
    for (int parent : before[i]) first = std::max(first, stage_of[parent]);
    if (p.items[i].glued_to_previous) {
      if (stage_of[i - 1] < first) return;
      first = last = stage_of[i - 1];
    }
    for (int s = first; s <= last; ++s) {
      const int device = device_of(s);
      const double here = p.items[i].seconds / (p.speed.empty() ? 1 : p.speed[device]);
      const int64_t bytes_here = p.items[i].parameter_bytes + p.versions[s] * p.items[i].weight_bytes +
                                 p.in_flight[s] * p.items[i].activation_bytes;
      stage_of[i] = s;
      ++held[s];
      seconds[device] += here;
      bytes[device] += bytes_here;
      add_messages(i, 1, seconds);
      const double slowest = *std::max_element(seconds.begin(), seconds.end());
      const CutValue so_far{slowest, 0, std::accumulate(seconds.begin(), seconds.end(), 0.0)};
      if (Time(p, so_far) <= best + 1e-9 && bytes[device] <= p.memory_limit) place(i + 1);
      add_messages(i, -1, seconds);
      bytes[device] -= bytes_here;
      seconds[device] -= here;
      --held[s];
    }
  };
  place(0);
  return best;
}

TEST(SolvePartition, EqualsBruteForceOnGraphs) {
  std::mt19937 random(21);
  int solved = 0, refused = 0, unlike_the_order = 0;
  for (int round = 0; solved + refused < 1000; ++round) {
    PartitionProblem problem = RandomGraph(random, 1);
    if (round % 4 == 0) problem.microbatches = 1 + round % 7;
    SCOPED_TRACE(round);
    if (problem.stages > MaxStages(problem)) continue;
    const double best = BruteForceTime(problem);
    const auto solution = SolvePartition(problem);
    if (best == kInfinity) {
      ++refused;
      EXPECT_EQ(solution.status().code(), absl::StatusCode::kResourceExhausted);
      continue;
    }
    ++solved;
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_EQ(CheckPartition(problem, *solution), absl::OkStatus());
    EXPECT_NEAR(StepTime(problem, solution->stage_of), best, 1e-9);
    if (problem.microbatches == 0) {
      EXPECT_NEAR(solution->lower_bound, best, 1e-6);
    }
    const auto in_order = SolveFixedOrder(problem);
    if (!in_order.ok()) {
      ++unlike_the_order;
      continue;
    }
    EXPECT_EQ(CheckPartition(problem, *in_order), absl::OkStatus());
    EXPECT_GE(StepTime(problem, in_order->stage_of), best - 1e-9);
    if (problem.microbatches == 0) {
      EXPECT_LE(in_order->lower_bound, best + 1e-9);
    }
    unlike_the_order += StepTime(problem, in_order->stage_of) > best + 1e-9;
  }
  EXPECT_GT(solved, 500);
  EXPECT_GT(refused, 50);
  EXPECT_GT(unlike_the_order, 100);
}

// The least memory that is named does do, and one byte less does not.
TEST(SolvePartition, NamesTheLeastMemoryOfAllOrders) {
  std::mt19937 random(22);
  int refused = 0, less_than_in_order = 0;
  for (int round = 0; round < 300; ++round) {
    PartitionProblem problem = RandomGraph(random, 1 + round % 3, 11);
    if (problem.stages > MaxStages(problem)) continue;
    SCOPED_TRACE(round);
    problem.memory_limits.clear();
    problem.memory_limit = 1;
    const absl::Status status = SolvePartition(problem).status();
    if (status.ok()) continue;
    ++refused;
    problem.memory_limit = LeastMemoryNamed(status);
    less_than_in_order +=
        problem.memory_limit < LeastMemoryNamed(SolveFixedOrder(WithLimit(problem, 1)).status());
    EXPECT_LT(BruteForceTime(problem), kInfinity);
    --problem.memory_limit;
    EXPECT_EQ(BruteForceTime(problem), kInfinity);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(less_than_in_order, 20);
}

TEST(SolvePartition, EqualsBruteForceWithSeveralStagesADevice) {
  std::mt19937 random(23);
  int solved = 0, refused = 0, few_microbatches = 0;
  for (int round = 0; solved + refused < 600; ++round) {
    PartitionProblem problem = RandomGraph(random, 2 + round % 2);
    if (round % 3 == 0) problem.microbatches = 1 + round % 7;
    if (problem.stages > MaxStages(problem)) continue;
    SCOPED_TRACE(round);
    const double best = BruteForceTime(problem);
    const auto solution = SolvePartition(problem);
    if (best == kInfinity) {
      ++refused;
      EXPECT_EQ(solution.status().code(), absl::StatusCode::kResourceExhausted);
      continue;
    }
    ++solved;
    few_microbatches += problem.microbatches > 0;
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_EQ(CheckPartition(problem, *solution), absl::OkStatus());
    EXPECT_NEAR(StepTime(problem, solution->stage_of), best, 1e-9);
    if (problem.microbatches == 0) {
      EXPECT_NEAR(solution->lower_bound, best, 1e-6);
    }
  }
  EXPECT_GT(solved, 400);
  EXPECT_GT(refused, 30);
  EXPECT_GT(few_microbatches, 100);
}

// Layers of up to 5 items, each used by some of the next: more ideals than can be looked at.
PartitionProblem Wide(std::mt19937& random, int layers) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  PartitionProblem problem;
  problem.stages = 6;
  int previous = 0;  // the first item of the layer before
  for (int layer = 0; layer < layers; ++layer) {
    const int first = problem.items.size(), width = pick(1, 5);
    for (int k = 0; k < width; ++k) problem.items.push_back({pick(1, 100) * 0.1, 0, 0, false});
    for (int user = first; layer > 0 && user < first + width; ++user) {
      for (int made = previous; made < first; ++made) {
        if (pick(0, 2) == 0) problem.tensors.push_back({made, {user}, pick(1, 80) * 0.1});
      }
    }
    previous = first;
  }
  return problem;
}

// The items in an order drawn at random, each after what it needs.
PartitionProblem Shuffled(const PartitionProblem& problem, std::mt19937& random) {
  const int n = problem.items.size();
  std::vector<int> missing(n, 0), place(n), free;
  for (const PartitionTensor& tensor : problem.tensors) ++missing[tensor.consumers[0]];
  for (int i = 0; i < n; ++i) {
    if (missing[i] == 0) free.push_back(i);
  }
  PartitionProblem shuffled;
  shuffled.stages = problem.stages;
  while (!free.empty()) {
    std::swap(free[random() % free.size()], free.back());
    const int item = free.back();
    free.pop_back();
    place[item] = shuffled.items.size();
    shuffled.items.push_back(problem.items[item]);
    for (const PartitionTensor& tensor : problem.tensors) {
      if (tensor.producer == item && --missing[tensor.consumers[0]] == 0) free.push_back(tensor.consumers[0]);
    }
  }
  for (const PartitionTensor& tensor : problem.tensors)
    shuffled.tensors.push_back({place[tensor.producer], {place[tensor.consumers[0]]}, tensor.seconds});
  return shuffled;
}

TEST(SolvePartition, SearchIsNoWorseThanTheBestOfAThousandOrders) {
  std::mt19937 random(24);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const PartitionProblem problem = Wide(random, 25);
    double best_of_orders = kInfinity;
    for (int k = 0; k < 1000; ++k)
      best_of_orders = std::min(best_of_orders, SolveFixedOrder(Shuffled(problem, random))->bottleneck);
    PartitionEffort effort;
    effort.ideals = 0;
    effort.search = 10'000'000;
    const auto found = SolvePartition(problem, effort);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(CheckPartition(problem, *found), absl::OkStatus());
    EXPECT_LE(found->bottleneck, best_of_orders + 1e-9);
    const auto again = SolvePartition(problem, effort);
    EXPECT_EQ(again->stage_of, found->stage_of) << "the same each time";
  }
}

// Where the exact solver may not be asked, the search finds its optimum nearly always, and never fails to fit.
TEST(SolvePartition, SearchFindsWhatTheExactSolverFinds) {
  std::mt19937 random(25);
  int solved = 0, best_found = 0;
  for (int round = 0; round < 300; ++round) {
    PartitionProblem problem = RandomGraph(random, 1 + round % 3);
    if (round % 4 == 0) problem.microbatches = 1 + round % 7;
    if (problem.stages > MaxStages(problem)) continue;
    SCOPED_TRACE(round);
    const auto exact = SolvePartition(problem);
    PartitionEffort effort;
    effort.ideals = 0;
    effort.search = 500'000;
    const auto found = SolvePartition(problem, effort);
    if (!found.ok()) continue;
    ASSERT_TRUE(exact.ok());
    ++solved;
    EXPECT_EQ(CheckPartition(problem, *found), absl::OkStatus());
    const double least = StepTime(problem, exact->stage_of), time = StepTime(problem, found->stage_of);
    EXPECT_GE(time, least - 1e-9);
    best_found += time < least + 1e-9;
  }
  EXPECT_GT(solved, 150);
  EXPECT_GT(best_found, solved * 95 / 100);
}

// Two chains side by side, joined at the end: in the order of the items they alternate, the best cut takes one
// chain after the other.
TEST(SolvePartition, LeavesTheOrderOfTheItems) {
  PartitionProblem problem;
  problem.stages = 2;
  for (int i = 0; i < 8; ++i) problem.items.push_back({1, 0, 0, false});
  for (int i = 0; i < 6; ++i) problem.tensors.push_back({i, {i + 2}, 5});
  const auto solution = SolvePartition(problem);
  ASSERT_TRUE(solution.ok());
  EXPECT_DOUBLE_EQ(solution->bottleneck, 4);
  EXPECT_DOUBLE_EQ(SolveFixedOrder(problem)->bottleneck, 12);
}

TEST(SolvePartition, FewMicrobatchesWantFewMessages) {
  // Even halves cost a message of 2 at both ends; with one item less in front the message is free.
  PartitionProblem problem = Chain({1, 1, 1, 1}, 2);
  problem.tensors = {{0, {1}, 0}, {1, {2}, 0.8}, {2, {3}, 0.8}};
  problem.microbatches = 100;
  EXPECT_THAT(SolvePartition(problem)->stage_of, ElementsAre(0, 0, 1, 1));
  problem.microbatches = 2;
  EXPECT_THAT(SolvePartition(problem)->stage_of, ElementsAre(0, 1, 1, 1));
}

TEST(SolvePartition, FastDevicesGetMore) {
  PartitionProblem problem = Chain(std::vector<double>(12, 1), 3);
  problem.speed = {1, 2, 3};
  const auto solution = SolvePartition(problem);
  EXPECT_DOUBLE_EQ(solution->bottleneck, 2);
  EXPECT_EQ(std::count(solution->stage_of.begin(), solution->stage_of.end(), 2), 6);
}

}  // namespace
}  // namespace pipec
