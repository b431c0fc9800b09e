#include "passes/auto_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "compiler/schedule/search/bound.h"
#include "compiler/schedule/search/search.h"
#include "passes/chosen_schedule.h"
#include "passes/schedule_problem.h"

namespace pipec {
namespace {

// How often the search may be told that its order needed more memory than it was said to.
constexpr int kMemoryTrials = 3;

// One microbatch at a time: what every device that can hold the stages at all has room for.
Schedule OneAtATime(const ScheduleShape& shape, const std::vector<int>& rank_of_stage) {
  Schedule schedule{"one microbatch at a time", shape, rank_of_stage,
                    std::vector<std::vector<Action>>(shape.ranks)};
  for (int m = 0; m < shape.microbatches; ++m) {
    for (int s = 0; s < shape.stages(); ++s)
      schedule.ranks[rank_of_stage[s]].push_back({ActionKind::kF, s, m});
    for (int s = shape.stages() - 1; s >= 0; --s) {
      schedule.ranks[rank_of_stage[s]].push_back({ActionKind::kI, s, m});
      schedule.ranks[rank_of_stage[s]].push_back({ActionKind::kW, s, m});
    }
  }
  return schedule;
}

PlanCandidate Found(Schedule schedule) {
  const ScheduleShape shape = schedule.shape;
  return {kAutoSchedule, shape, std::make_shared<const Schedule>(std::move(schedule))};
}

// A search goes by what a microbatch keeps, the layout in memory may need a little more: then it searches with
// less. Returns when the step's order ends now.
double TryBest(ScheduleProblem problem, const std::vector<Schedule>& named, double best_seconds,
               PlanTrials& trials) {
  for (int trial = 0; trial < kMemoryTrials; ++trial) {
    absl::StatusOr<FoundSchedule> found = FindBestSchedule(problem, named);
    if (!found.ok() || found->makespan >= best_seconds) break;
    if (trials.Try(Found(std::move(found->schedule)))) return trials.candidates().back().order_seconds;
    trials.ForgetLast();
    for (int64_t& limit : problem.limit) limit -= limit / 16;
  }
  return best_seconds;
}

}  // namespace

double TryFoundOrders(const Placements& placements, double best_seconds, PlanMaker& maker,
                      PlanTrials& trials) {
  struct Placed {
    ScheduleProblem problem;
    double bound;  // seconds of a step
    double samples;
    const std::vector<Schedule>* named;
  };
  std::vector<Placed> placed;
  double bound = std::numeric_limits<double>::infinity();
  for (const auto& [placement, named] : placements) {
    const absl::StatusOr<std::unique_ptr<Module>> module =
        maker.Compile(Found(OneAtATime(named[0].shape, placement.second)), 0);
    const absl::StatusOr<Cluster> cluster = maker.ClusterOf(named[0].shape.ranks);
    if (!module.ok() || !cluster.ok()) {
      bound = 0;
      continue;
    }
    ScheduleProblem problem = ScheduleProblemOf(**module, *cluster);
    const double bound_here = MakespanBound(problem);
    bound = std::min(bound, bound_here);
    const int64_t samples = (*module)->microbatch_size * named[0].shape.microbatches * (*module)->replicas;
    placed.push_back({std::move(problem), bound_here, static_cast<double>(samples), &named});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.bound < b.bound; });
  for (Placed& way : placed) {
    if (way.bound < best_seconds && trials.MayBeChosen(way.bound / way.samples))
      best_seconds = TryBest(std::move(way.problem), *way.named, best_seconds, trials);
  }
  return std::isfinite(bound) ? bound : 0;
}

}  // namespace pipec
