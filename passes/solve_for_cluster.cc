#include "passes/solve_for_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"
#include "passes/cut_in_order.h"
#include "passes/move_boundaries.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kRounds = 3;
constexpr double kFirstStep = 0.5, kLastStep = 0.01;  // of the search for the speeds of the bound, relative
constexpr double kExact = 1e-9;                       // relative
// Of what a rank really takes, the least that its compute is taken for, where modelled messages take more than real ones.
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

// The problem in which no item takes longer, on any device, than it really does; of those the one whose ranks need most.
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

std::vector<double> RankSeconds(const StageItems& items, const Cluster& cluster,
                                const std::vector<int>& stage_of) {
  const PartitionProblem& problem = items.problem;
  std::vector<double> seconds(cluster.devices.size(), 0);
  for (size_t i = 0; i < stage_of.size(); ++i) {
    const int rank = problem.rank_of_stage[stage_of[i]];
    seconds[rank] += items.SecondsOn(items.kind_of_rank[rank], i);
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const int from = stage_of[problem.tensors[t].producer], from_rank = problem.rank_of_stage[from];
    std::set<int> others;
    for (const int consumer : problem.tensors[t].consumers) others.insert(stage_of[consumer]);
    others.erase(from);
    double slowest = 0;
    for (const int other : others) {
      const int rank = problem.rank_of_stage[other];
      const double message = MessageSeconds(items.tensor_bytes[t], cluster.LinkBetween(from_rank, rank));
      seconds[rank] += message;
      slowest = std::max(slowest, message);
    }
    seconds[from_rank] += slowest;
  }
  return seconds;
}

absl::StatusOr<PartitionSolution> SolveForCluster(
    StageItems& items, const Cluster& cluster,
    absl::FunctionRef<absl::StatusOr<PartitionSolution>(const PartitionProblem&)> solve) {
  const std::vector<Link> links = cluster.Links();
  if (items.times_on.size() == 1 && links.size() == 1) return solve(WithoutLimit(items.problem));
  PartitionProblem fastest_links = WithoutLimit(items.problem), slowest_links = fastest_links;
  for (size_t t = 0; t < items.tensor_bytes.size(); ++t) {
    double& seconds = slowest_links.tensors[t].seconds;
    for (const Link& link : links) seconds = std::max(seconds, MessageSeconds(items.tensor_bytes[t], link));
  }
  PartitionSolution best;
  best.bottleneck = std::numeric_limits<double>::infinity();
  ASSIGN_OR_RETURN(const PartitionSolution optimistic, solve(Optimistic(items)));
  for (PartitionProblem* problem : {&fastest_links, &slowest_links}) {
    problem->speed.resize(cluster.devices.size(), 1);
    for (int round = 0; round < kRounds; ++round) {
      ASSIGN_OR_RETURN(PartitionSolution solution, solve(*problem));
      const std::vector<double> real = RankSeconds(items, cluster, solution.stage_of);
      const double bottleneck = *std::max_element(real.begin(), real.end());
      const bool exact = std::abs(bottleneck - solution.bottleneck) <= kExact * bottleneck;
      FitSpeeds(solution.stage_of, real, *problem);
      if (bottleneck < best.bottleneck) {
        best = {std::move(solution.stage_of), bottleneck, 0};
        items.problem.speed = problem->speed;
        items.problem.tensors = problem->tensors;
      }
      if (exact) break;
    }
  }
  CutInOrder(items, cluster, best.stage_of);
  MoveBoundaries(items, cluster, best.stage_of);
  const std::vector<double> real = RankSeconds(items, cluster, best.stage_of);
  best.bottleneck = *std::max_element(real.begin(), real.end());
  FitSpeeds(best.stage_of, real, items.problem);
  best.lower_bound = std::min(optimistic.lower_bound, best.bottleneck);
  return best;
}

}  // namespace pipec
