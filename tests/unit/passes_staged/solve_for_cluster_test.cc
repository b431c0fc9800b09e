// Items, devices, links and memories drawn at random: every cut tried, what it takes and keeps counted here.
#include "passes/solve_for_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Drawn {
  StageItems items;
  Cluster cluster;
};

class Draws {
 public:
  explicit Draws(int seed) : random_(seed) {}

  int Whole(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }
  double Spread(double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<>(0, 1)(random_));
  }

  // A chain, or a graph of `extra` more values: one in three a gradient, of the last of its items.
  Drawn Make(int items, int ranks, int extra, bool limited) {
    Drawn drawn;
    PartitionProblem& problem = drawn.items.problem;
    problem.stages = ranks;
    drawn.items.nodes.assign(items, nullptr);
    drawn.items.times_on.resize(ranks);
    problem.items.resize(items);
    int64_t all_bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      DeviceProfile device;
      device.name = std::string(1, static_cast<char>('a' + r));
      device.link = {Spread(1e-4, 1e-1), Spread(1e2, 1e4)};
      drawn.cluster.devices.push_back(device);
      drawn.cluster.host_of.push_back(r / 2);
      drawn.items.kind_of_rank.push_back(r);
      problem.rank_of_stage.push_back(r);
      problem.in_flight.push_back(ranks - r);
      problem.speed.push_back(1);
    }
    drawn.cluster.network = {Spread(1e-3, 1), Spread(1e2, 1e4)};
    for (int i = 0; i < items; ++i) {
      PartitionItem& item = problem.items[i];
      item.parameter_bytes = Whole(0, 100);
      item.activation_bytes = Whole(0, 50);
      if (Whole(0, 1)) item.remake[0] = {Whole(1, 30), Spread(0.1, 2)};
      all_bytes += item.parameter_bytes + ranks * item.activation_bytes;
      const double work = Spread(0.5, 5);
      for (int r = 0; r < ranks; ++r)
        drawn.items.times_on[r].push_back({work * Spread(0.5, 2) * (r + 1), 0, 0});
      item.seconds = work;
    }
    for (int i = 0; i + 1 < items; ++i) Add(i, {i + 1}, i, drawn);
    for (int k = 0; k < extra; ++k) {
      std::set<int> holders = {Whole(0, items - 1), Whole(0, items - 1), Whole(0, items - 1)};
      if (holders.size() < 2) continue;
      const bool gradient = Whole(0, 2) == 0;
      Add(*holders.begin(), {std::next(holders.begin()), holders.end()},
          gradient ? *holders.rbegin() : *holders.begin(), drawn);
    }
    if (limited) {
      for (int r = 0; r < ranks; ++r)
        problem.memory_limits.push_back(
            static_cast<int64_t>(Spread(0.15, 1.2) * static_cast<double>(all_bytes)));
    }
    return drawn;
  }

 private:
  void Add(int first, std::vector<int> others, int sender, Drawn& drawn) {
    const int64_t bytes = Whole(1, 1000);
    double seconds = kNever;
    for (const Link& link : drawn.cluster.Links()) seconds = std::min(seconds, MessageSeconds(bytes, link));
    drawn.items.problem.tensors.push_back({first, std::move(others), seconds, sender == first});
    drawn.items.tensor_bytes.push_back(bytes);
    drawn.items.sender.push_back(sender);
  }

  std::mt19937 random_;
};

double SlowestRank(const Drawn& drawn, const std::vector<int>& stage_of) {
  const PartitionProblem& problem = drawn.items.problem;
  double slowest = 0;
  for (int s = 0; s < problem.stages; ++s) {
    double seconds = 0, kept = 0, remade_bytes = 0, remade_seconds = 0;
    for (size_t i = 0; i < stage_of.size(); ++i) {
      if (stage_of[i] != s) continue;
      const PartitionItem& item = problem.items[i];
      const double copies = problem.in_flight[s];
      seconds += drawn.items.times_on[s][i].f;
      kept += static_cast<double>(item.parameter_bytes) + copies * static_cast<double>(item.activation_bytes);
      remade_bytes += copies * static_cast<double>(item.remake[0].bytes);
      remade_seconds += item.remake[0].seconds;
    }
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const int from = stage_of[drawn.items.sender[t]];
      std::set<int> holders = {stage_of[problem.tensors[t].producer]};
      for (const int item : problem.tensors[t].consumers) holders.insert(stage_of[item]);
      double most = 0;
      for (const int other : holders) {
        if (holders.count(s) == 0 || other == from || (s != from && other != s)) continue;
        most = std::max(most,
                        MessageSeconds(drawn.items.tensor_bytes[t], drawn.cluster.LinkBetween(from, other)));
      }
      seconds += most;
    }
    if (!problem.memory_limits.empty()) {
      const double limit = static_cast<double>(problem.memory_limits[s]);
      if (kept > limit) return kNever;
      if (kept + remade_bytes > limit)
        seconds += remade_seconds * (kept + remade_bytes - limit) / remade_bytes / problem.speed[s];
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

// Of all cuts without empty stages that `order` allows. In the order of the items only: if `in_order`.
double BestOfAll(const Drawn& drawn, bool in_order) {
  const int items = static_cast<int>(drawn.items.nodes.size()), stages = drawn.items.problem.stages;
  std::vector<int> stage_of(items, 0);
  double best = kNever;
  const std::function<void(int)> place = [&](int item) {
    if (item == items) {
      if (std::set<int>(stage_of.begin(), stage_of.end()).size() == stages)
        best = std::min(best, SlowestRank(drawn, stage_of));
      return;
    }
    int first = in_order && item > 0 ? stage_of[item - 1] : 0;
    for (const PartitionTensor& tensor : drawn.items.problem.tensors) {
      if (tensor.ordered && std::count(tensor.consumers.begin(), tensor.consumers.end(), item))
        first = std::max(first, stage_of[tensor.producer]);
    }
    for (int s = first; s < stages; ++s) stage_of[item] = s, place(item + 1);
  };
  place(0);
  return best;
}

absl::StatusOr<PartitionSolution> Solve(const PartitionProblem& problem) { return SolvePartition(problem); }

// On a chain messages go to neighbours only, so that the cut in order is exact.
TEST(SolveForCluster, ChainsWithMemoryEqualBruteForce) {
  Draws draws(1);
  int fit = 0;
  for (int trial = 0; trial < 120; ++trial) {
    const Drawn drawn = draws.Make(draws.Whole(4, 12), draws.Whole(2, 4), 0, trial % 4 > 0);
    const double best = BestOfAll(drawn, true);
    const auto solution = SolveForCluster(drawn.items, drawn.cluster, Solve);
    ASSERT_EQ(solution.ok(), best < kNever) << trial;
    if (!solution.ok()) continue;
    ++fit;
    EXPECT_NEAR(SlowestRank(drawn, solution->stage_of), best, 1e-9 * best) << trial;
    EXPECT_NEAR(solution->bottleneck, best, 1e-9 * best) << trial;
    EXPECT_LE(solution->lower_bound, best * (1 + 1e-9)) << trial;
  }
  EXPECT_GT(fit, 60);
}

// Whatever the order: never above what exists, seldom far from it.
TEST(SolveForCluster, GraphsAreBoundedByBruteForce) {
  Draws draws(2);
  int fit = 0, exact = 0;
  double worst = 1;
  for (int trial = 0; trial < 120; ++trial) {
    const Drawn drawn = draws.Make(draws.Whole(4, 8), draws.Whole(2, 3), draws.Whole(1, 4), trial % 2 > 0);
    const double best = BestOfAll(drawn, false);
    const auto solution = SolveForCluster(drawn.items, drawn.cluster, Solve);
    ASSERT_EQ(solution.ok(), best < kNever) << trial;
    if (!solution.ok()) continue;
    ++fit;
    const double found = SlowestRank(drawn, solution->stage_of);
    EXPECT_NEAR(solution->bottleneck, found, 1e-9 * best) << trial;
    EXPECT_LE(solution->lower_bound, best * (1 + 1e-9)) << trial;
    EXPECT_GE(found, best * (1 - 1e-9)) << trial;
    worst = std::max(worst, found / best);
    exact += found <= best * (1 + 1e-9);
  }
  EXPECT_GT(fit, 80);
  EXPECT_GT(exact, fit * 95 / 100);
  EXPECT_LT(worst, 1.5);
}

// More memory is never slower.
TEST(SolveForCluster, MoreMemoryIsNeverSlower) {
  Draws draws(3);
  for (int trial = 0; trial < 15; ++trial) {
    Drawn drawn = draws.Make(10, 3, 0, true);
    double before = kNever;
    const std::vector<int64_t> limits = drawn.items.problem.memory_limits;
    for (const double factor : {0.5, 0.7, 0.9, 1.0, 1.3, 2.0}) {
      for (size_t r = 0; r < limits.size(); ++r)
        drawn.items.problem.memory_limits[r] = static_cast<int64_t>(factor * static_cast<double>(limits[r]));
      const auto solution = SolveForCluster(drawn.items, drawn.cluster, Solve);
      const double seconds = solution.ok() ? SlowestRank(drawn, solution->stage_of) : kNever;
      EXPECT_LE(seconds, before * (1 + 1e-9)) << trial << " " << factor;
      before = seconds;
    }
  }
}

}  // namespace
}  // namespace pipec
