#include "passes/move_boundaries.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "passes/item_runs.h"
#include "passes/rank_loads.h"

namespace pipec {
namespace {

// Of looking at an item or a tensor of a cut that is tried.
constexpr int64_t kSteps = 4'000'000;
constexpr double kBetter = 1 - 1e-9;

// Runs, and what must not come behind or before each.
struct OrderedRuns : ItemRuns {
  explicit OrderedRuns(const PartitionProblem& problem) : ItemRuns(problem), before(size()), behind(size()) {
    for (const PartitionTensor& tensor : problem.tensors) {
      if (!tensor.ordered) continue;
      for (const int consumer : tensor.consumers) Order(tensor.producer, consumer);
    }
    for (const auto& [first, second] : problem.order) Order(first, second);
  }
  void Order(int first, int second) {
    if (run_of[first] == run_of[second]) return;
    behind[run_of[first]].push_back(second);
    before[run_of[second]].push_back(first);
  }

  std::vector<std::vector<int>> before, behind;  // by run: items
};

class Mover {
 public:
  Mover(const StageItems& items, const Cluster& cluster, std::vector<int>& stage_of)
      : items_(items),
        loads_(items, cluster),
        runs_(items.problem),
        stage_of_(stage_of),
        held_(items.problem.stages, 0) {
    for (int run = 0; run < runs_.size(); ++run) ++held_[StageOf(run)];
  }

  void Run() {
    auto [slowest, rank] = Slowest();
    while (steps_ < kSteps) {
      int best_run = -1, best_stage = 0;
      double best = slowest * kBetter;
      for (int run = 0; run < runs_.size() && steps_ < kSteps; ++run) {
        const int stage = StageOf(run);
        if (items_.problem.rank_of_stage[stage] != rank) continue;
        for (const int other : {stage - 1, stage + 1}) {
          if (!MayMove(run, other)) continue;
          Move(run, other);
          if (const double seconds = Slowest().first; seconds < best)
            best = seconds, best_run = run, best_stage = other;
          Move(run, stage);
        }
      }
      if (best_run < 0) return;
      Move(best_run, best_stage);
      std::tie(slowest, rank) = Slowest();
    }
  }

 private:
  int StageOf(int run) const { return stage_of_[runs_.begin[run]]; }

  bool MayMove(int run, int stage) const {
    if (stage < 0 || stage >= items_.problem.stages || held_[StageOf(run)] == 1) return false;
    return std::all_of(runs_.before[run].begin(), runs_.before[run].end(),
                       [&](int item) { return stage_of_[item] <= stage; }) &&
           std::all_of(runs_.behind[run].begin(), runs_.behind[run].end(),
                       [&](int item) { return stage_of_[item] >= stage; });
  }

  void Move(int run, int stage) {
    --held_[StageOf(run)];
    ++held_[stage];
    std::fill(stage_of_.begin() + runs_.begin[run], stage_of_.begin() + runs_.begin[run + 1], stage);
  }

  // Seconds of the slowest rank, and which it is.
  std::pair<double, int> Slowest() {
    steps_ += static_cast<int64_t>(items_.problem.items.size() + items_.problem.tensors.size());
    const std::vector<double> seconds = loads_.Of(stage_of_);
    const auto most = std::max_element(seconds.begin(), seconds.end());
    return {*most, static_cast<int>(most - seconds.begin())};
  }

  const StageItems& items_;
  const RankLoads loads_;
  const OrderedRuns runs_;
  std::vector<int>& stage_of_;
  std::vector<int> held_;  // runs, by stage
  int64_t steps_ = 0;
};

}  // namespace

void MoveBoundaries(const StageItems& items, const Cluster& cluster, std::vector<int>& stage_of) {
  Mover(items, cluster, stage_of).Run();
}

}  // namespace pipec
