#include "passes/auto_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "compiler/schedule/search/bound.h"
#include "compiler/schedule/search/search.h"
#include "passes/schedule_problem.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kMostVirtualStages = 4;
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

// Sums of the same times in another order are the same.
int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

class Finder {
 public:
  Finder(const CompileOptions& options, const CompileCandidate& compile)
      : options_(options), compile_(compile) {}

  absl::StatusOr<AutoSchedule> Run() {
    TryNamed();
    if (options_.mode == Mode::kTrain) Search();
    const auto better = [](const ScheduleCandidate& a, const ScheduleCandidate& b) {
      if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
      return std::pair(Nanoseconds(a.step_seconds), a.peak_bytes) <
             std::pair(Nanoseconds(b.step_seconds), b.peak_bytes);
    };
    std::stable_sort(result_.candidates.begin(), result_.candidates.end(), better);
    if (result_.candidates.empty() || !result_.candidates[0].refusal.empty())
      return first_refusal_.ok() ? not_generated_ : first_refusal_;
    return std::move(result_);
  }

 private:
  std::vector<int> VirtualStages(const ScheduleInfo& info) const {
    if (options_.virtual_stages > 0) return {options_.virtual_stages};
    if (info.forward_only) return {info.default_virtual_stages};
    std::vector<int> all(kMostVirtualStages);
    std::iota(all.begin(), all.end(), 1);
    return all;
  }

  void TryNamed() {
    for (const ScheduleInfo& info : AllSchedules()) {
      if (info.forward_only != (options_.mode == Mode::kInfer) || info.late_updates) continue;
      for (const int v : VirtualStages(info)) {
        const absl::StatusOr<Schedule> schedule = info.generate({options_.ranks, v, options_.microbatches});
        if (!schedule.ok()) {
          if (not_generated_.ok()) not_generated_ = schedule.status();
          continue;
        }
        Try({std::string(info.name), v});
        placements_[{v, schedule->rank_of_stage}].push_back(*schedule);
      }
    }
  }

  // Adds a candidate; the module if there is one.
  std::unique_ptr<Module> Try(ScheduleCandidate candidate) {
    absl::StatusOr<std::unique_ptr<Module>> module = compile_(candidate);
    if (module.ok()) {
      candidate.step_seconds = (*module)->simulation.step_seconds;
      candidate.order_seconds = (*module)->simulation.makespan;
      candidate.bubble_ratio = (*module)->simulation.bubble_ratio;
      for (const RankMemory& memory : (*module)->memory)
        candidate.peak_bytes = std::max(candidate.peak_bytes, memory.arena_bytes);
      best_seconds_ = std::min(best_seconds_, candidate.order_seconds);
    } else {
      if (first_refusal_.ok()) first_refusal_ = module.status();
      candidate.refusal = std::string(module.status().message());
    }
    result_.candidates.push_back(std::move(candidate));
    return module.ok() ? *std::move(module) : nullptr;
  }

  void Search() {
    double bound = std::numeric_limits<double>::infinity();
    struct Placed {
      ScheduleProblem problem;
      double bound;
      const std::vector<Schedule>* named;
    };
    std::vector<Placed> placed;
    for (const auto& [placement, named] : placements_) {
      const auto& [v, rank_of_stage] = placement;
      const ScheduleShape shape{options_.ranks, v, options_.microbatches};
      absl::StatusOr<std::unique_ptr<Module>> module =
          compile_({"auto", v, std::make_shared<const Schedule>(OneAtATime(shape, rank_of_stage))});
      if (!module.ok()) {
        bound = 0;
        continue;
      }
      ScheduleProblem problem = ScheduleProblemOf(**module, options_.cluster);
      const double bound_here = MakespanBound(problem);
      bound = std::min(bound, bound_here);
      placed.push_back({std::move(problem), bound_here, &named});
    }
    result_.bound_seconds = std::isfinite(bound) ? bound : 0;
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.bound < b.bound; });
    for (Placed& way : placed) {
      if (way.bound < best_seconds_) SearchPlaced(std::move(way.problem), *way.named);
    }
  }

  // A search goes by what a microbatch keeps, the layout in memory may need a little more: then it searches with less.
  void SearchPlaced(ScheduleProblem problem, const std::vector<Schedule>& named) {
    for (int trial = 0; trial < kMemoryTrials; ++trial) {
      const absl::StatusOr<FoundSchedule> found = FindBestSchedule(problem, named);
      if (!found.ok() || found->makespan >= best_seconds_) return;
      const std::unique_ptr<Module> module =
          Try({"auto", problem.shape.virtual_stages, std::make_shared<const Schedule>(found->schedule)});
      if (module) return;
      result_.candidates.pop_back();
      for (int64_t& limit : problem.limit) limit -= limit / 16;
    }
  }

  const CompileOptions& options_;
  const CompileCandidate& compile_;
  AutoSchedule result_;
  absl::Status first_refusal_, not_generated_;  // of what was compiled; of what cannot have such a shape
  double best_seconds_ = std::numeric_limits<double>::infinity();  // the least order_seconds
  std::map<std::pair<int, std::vector<int>>, std::vector<Schedule>>
      placements_;  // by V and rank of each stage
};

}  // namespace

absl::StatusOr<AutoSchedule> FindAutoSchedule(const CompileOptions& options,
                                              const CompileCandidate& compile) {
  return Finder(options, compile).Run();
}

}  // namespace pipec
