#include "passes/solve_for_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"
#include "passes/cut_in_order.h"
#include "passes/move_boundaries.h"
#include "passes/rank_loads.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kRounds = 3;
constexpr double kFirstStep = 0.5, kLastStep = 0.01;  // of the search for the speeds of the bound, relative
constexpr double kExact = 1e-9;                       // relative
// Of what a rank really takes, the least that its compute is taken for, where modelled messages take more than real
// ones.
constexpr double kLeastCompute = 0.1;

PartitionProblem WithoutLimit(PartitionProblem problem) {
  problem.memory_limit = std::numeric_limits<int64_t>::max();
  problem.memory_limits.clear();
  return problem;
}

// Seconds of an item, at speeds by kind of device, such that it takes as long or longer on every device.
double LeastSeconds(const StageItems& items, const std::vector<double>& speed, size_t item) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t kind = 0; kind < speed.size(); ++kind)
    least = std::min(least, items.SecondsOn(kind, item) * speed[kind]);
  return least;
}

// What all ranks together need at least, by compute alone: the dual of sharing items out in parts, whatever the speeds.
double SharedOut(const StageItems& items, const std::vector<double>& speed) {
  double seconds = 0, all = 0;
  for (size_t item = 0; item < items.nodes.size(); ++item) seconds += LeastSeconds(items, speed, item);
  for (const int kind : items.kind_of_rank) all += speed[kind];
  return seconds / all;
}

// The problem in which no item takes longer, on any device, than it really does; of those the one whose ranks need
// most.
PartitionProblem Optimistic(const StageItems& items) {
  PartitionProblem problem = WithoutLimit(items.problem);
  if (problem.speed.empty()) return problem;
  std::vector<double> speed(items.times_on.size());
  for (size_t r = 0; r < items.kind_of_rank.size(); ++r) speed[items.kind_of_rank[r]] = problem.speed[r];
  double most = SharedOut(items, speed);
  for (double step = kFirstStep; step > kLastStep;) {
    bool better = false;
    for (double& one : speed) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        const double before = std::exchange(one, one * factor);
        if (const double seconds = SharedOut(items, speed); seconds > most) {
          most = seconds, better = true;
        } else {
          one = before;
        }
      }
    }
    if (!better) step /= 2;
  }
  for (size_t r = 0; r < items.kind_of_rank.size(); ++r) problem.speed[r] = speed[items.kind_of_rank[r]];
  for (size_t item = 0; item < problem.items.size(); ++item)
    problem.items[item].seconds = LeastSeconds(items, speed, item);
  return problem;
}

// Gives each device the speed at which the cut takes on it what it really takes.
void FitSpeeds(const std::vector<int>& stage_of, const std::vector<double>& real, PartitionProblem& problem) {
  const std::vector<double> modelled = DeviceLoads(problem, stage_of);
  std::vector<double> work(modelled.size(), 0);
  for (size_t i = 0; i < stage_of.size(); ++i)
    work[problem.rank_of_stage[stage_of[i]]] += problem.items[i].seconds;
  for (size_t r = 0; r < work.size(); ++r) {
    if (work[r] <= 0) continue;
    const double messages = modelled[r] - work[r] / problem.speed[r];
    problem.speed[r] = work[r] / std::max(real[r] - messages, kLeastCompute * real[r]);
  }
}

}  // namespace

absl::StatusOr<PartitionSolution> SolveForCluster(
    const StageItems& items, const Cluster& cluster,
    absl::FunctionRef<absl::StatusOr<PartitionSolution>(const PartitionProblem&)> solve) {
  const std::vector<Link> links = cluster.Links();
  if (items.times_on.size() == 1 && links.size() == 1) return solve(items.problem);
  PartitionProblem fastest_links = items.problem, slowest_links = fastest_links;
  for (size_t t = 0; t < items.tensor_bytes.size(); ++t) {
    double& seconds = slowest_links.tensors[t].seconds;
    for (const Link& link : links) seconds = std::max(seconds, MessageSeconds(items.tensor_bytes[t], link));
  }
  const RankLoads loads(items, cluster);
  PartitionSolution best;
  best.bottleneck = std::numeric_limits<double>::infinity();
  const auto offer = [&](std::vector<int> stage_of) {
    const double slowest = loads.Slowest(stage_of);
    if (slowest < best.bottleneck) best = {std::move(stage_of), slowest, 0};
  };
  ASSIGN_OR_RETURN(const PartitionSolution optimistic, solve(Optimistic(items)));
  std::vector<std::vector<int>> orders;  // cuts whose order is tried
  orders.push_back(std::vector<int>(items.problem.items.size(), 0));  // that of the items
  std::vector<PartitionProblem*> problems = {&fastest_links};
  if (links.size() > 1) problems.push_back(&slowest_links);
  for (PartitionProblem* problem : problems) {
    problem->speed.resize(cluster.devices.size(), 1);
    for (int round = 0; round < kRounds; ++round) {
      ASSIGN_OR_RETURN(PartitionSolution solution, solve(*problem));
      const std::vector<double> real = loads.Of(solution.stage_of);
      const double bottleneck = *std::max_element(real.begin(), real.end());
      const bool exact = std::abs(bottleneck - solution.bottleneck) <= kExact * bottleneck;
      if (std::isfinite(bottleneck)) FitSpeeds(solution.stage_of, real, *problem);
      orders.push_back(solution.stage_of);
      offer(std::move(solution.stage_of));
      if (exact) break;
    }
  }
  for (const std::vector<int>& order : orders) CutInOrder(items, cluster, order, best.stage_of);
  std::vector<int> moved;
  do {
    MoveBoundaries(items, cluster, best.stage_of);
    moved = best.stage_of;
    CutInOrder(items, cluster, moved, best.stage_of);
  } while (best.stage_of != moved);
  best.bottleneck = loads.Slowest(best.stage_of);
  best.lower_bound = std::min(optimistic.lower_bound, best.bottleneck);
  return best;
}

}  // namespace pipec
