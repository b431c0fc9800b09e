#include "passes/auto_order.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "compiler/schedule/search/bound.h"
#include "compiler/schedule/search/search.h"
#include "passes/chosen_schedule.h"
#include "passes/schedule_problem.h"
#include "runtime/base/status.h"

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

// Of stages that are cut for `cut_for`; null: for one microbatch in flight.
PlanCandidate Found(Schedule schedule, std::shared_ptr<const Schedule> cut_for) {
  const ScheduleShape shape = schedule.shape;
  return {kAutoSchedule, shape, std::make_shared<const Schedule>(std::move(schedule)), std::move(cut_for)};
}

// Stages, cut and placed, whose best order is sought.
struct Stages {
  std::shared_ptr<const Schedule> cut_for;
  ScheduleProblem problem;
  double bound = 0;  // seconds of a step
  double samples = 0;
  std::vector<double> updates;  // by rank, seconds
  const std::vector<Schedule>* named = nullptr;
};

absl::StatusOr<Stages> StagesOf(const std::vector<Schedule>& named, std::shared_ptr<const Schedule> cut_for,
                                PlanMaker& maker) {
  const ScheduleShape& shape = named[0].shape;
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module,
                   maker.Draft(Found(OneAtATime(shape, named[0].rank_of_stage), cut_for)));
  ASSIGN_OR_RETURN(const Cluster cluster, maker.ClusterOf(shape.ranks));
  Stages stages{std::move(cut_for), ScheduleProblemOf(*module, cluster)};
  stages.bound = MakespanBound(stages.problem);
  stages.samples = static_cast<double>(module->microbatch_size * shape.microbatches * module->replicas);
  stages.named = &named;
  for (const std::vector<SimulatedAction>& slices : module->simulation.ranks) {
    double& seconds = stages.updates.emplace_back(0);
    for (const SimulatedAction& slice : slices) {
      if (slice.action.kind == ActionKind::kUpdate) seconds += slice.end - slice.start;
    }
  }
  return stages;
}

// As far as an order is concerned.
bool AreSame(const ScheduleProblem& a, const ScheduleProblem& b) {
  return a.rank_of_stage == b.rank_of_stage &&
         std::equal(a.times.begin(), a.times.end(), b.times.begin(), b.times.end(),
                    [](const StageTimes& x, const StageTimes& y) {
                      return std::tuple(x.f, x.i, x.w) == std::tuple(y.f, y.i, y.w);
                    });
}

// A search goes by what a microbatch keeps, the layout in memory may need a little more: then it searches with
// less. Returns when the step's order ends now.
double TryBest(Stages stages, double best_seconds, PlanTrials& trials) {
  for (int trial = 0; trial < kMemoryTrials; ++trial) {
    absl::StatusOr<FoundSchedule> found = FindBestSchedule(stages.problem, *stages.named);
    if (!found.ok() || found->makespan >= best_seconds) break;
    if (trials.Try(Found(std::move(found->schedule), stages.cut_for))) {
      trials.BoundLast(stages.bound);
      return trials.candidates().back().order_seconds;
    }
    trials.ForgetLast();
    for (int64_t& limit : stages.problem.limit) limit -= limit / 16;
  }
  return best_seconds;
}

}  // namespace

void TryFoundOrders(const Placements& placements, const BestNamed& best, double best_seconds,
                    PlanMaker& maker, PlanTrials& trials) {
  std::vector<Stages> ways;
  for (const auto& [placement, named] : placements) {
    absl::StatusOr<Stages> stages = StagesOf(named, nullptr, maker);
    if (stages.ok()) ways.push_back(*std::move(stages));
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Stages& a, const Stages& b) { return a.bound < b.bound; });
  const auto may_gain = [&](const Stages& way, double than) {
    return way.bound < than && trials.MayBeChosen(way.bound / way.samples);
  };
  absl::StatusOr<Stages> of_best = absl::NotFoundError("no schedule with a name fits");
  if (best.schedule) {
    const std::vector<Schedule>& named =
        placements.at({best.schedule->shape.virtual_stages, best.schedule->rank_of_stage});
    of_best = StagesOf(named, best.schedule, maker);
  }
  bool are_others = true;
  for (Stages& way : ways) {
    are_others &= !of_best.ok() || !AreSame(way.problem, of_best->problem);
    if (may_gain(way, best_seconds)) best_seconds = TryBest(std::move(way), best_seconds, trials);
  }
  if (!of_best.ok()) return;
  // A step takes as long as the rank that has most to do from its first action to its last, which need not be the
  // last to end.
  if (absl::StatusOr<Schedule> shorter = ShortenSpans(of_best->problem, of_best->updates, *best.schedule);
      shorter.ok()) {
    shorter->name = kAutoSchedule;
    if (trials.Try(Found(*std::move(shorter), best.schedule))) {
      trials.BoundLast(of_best->bound);
    } else {
      trials.ForgetLast();
    }
  }
  if (are_others && may_gain(*of_best, best.order_seconds))
    TryBest(*std::move(of_best), best.order_seconds, trials);
}

}  // namespace pipec
