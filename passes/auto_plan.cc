#include "passes/auto_plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/search/bound.h"
#include "passes/auto_order.h"
#include "passes/chosen_schedule.h"
#include "passes/nothing_fits.h"
#include "passes/plan_bounds.h"
#include "passes/plan_trials.h"
#include "passes/schedule_problem.h"
#include "runtime/base/counted.h"
#include "runtime/base/format_size.h"
#include "runtime/base/least_memory.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kMostVirtualStages = 4;
// What sums of seconds may be off by.
constexpr double kRounding = 1e-9;
// Bytes: more than any plan needs.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// A number of ranks and of microbatches, and its plans.
struct Pair {
  int ranks = 1, microbatches = 1;
  Placements placements;
  BestNamed best;
  double best_order = std::numeric_limits<double>::infinity();  // seconds, of the candidates' order_seconds
};

class Finder {
 public:
  Finder(const CompileOptions& options, const PlanSpace& space, PlanMaker& maker)
      : options_(options), space_(space), maker_(maker), bounds_(space, maker), trials_(maker) {}

  absl::StatusOr<AutoPlan> Run() {
    RETURN_IF_ERROR(ListPairs());
    for (Pair& pair : pairs_) {
      if (Admit(pair)) TryNamed(pair);
    }
    if (seeks_orders()) TryFound();
    result_.candidates = trials_.Sorted();
    if (result_.candidates.empty() || !result_.candidates[0].refusal.empty()) return Refusal();
    return std::move(result_);
  }

 private:
  using PlanKey = std::tuple<int, absl::string_view, int>;  // ranks, schedule, stages a rank

  // A plan with the most microbatches that it can have.
  struct WithMore {
    WithMore(const PlanCandidate& candidate, bool is_roomy)
        : candidate(candidate), sample_seconds(candidate.SampleSeconds()), is_unlimited(is_roomy) {}

    PlanCandidate candidate;
    double sample_seconds;
    bool is_unlimited;  // sample_seconds are what it takes without a limit of memory
  };

  bool chooses_schedule() const { return options_.schedule == kAutoSchedule; }
  bool seeks_orders() const { return chooses_schedule() && options_.mode == Mode::kTrain; }
  bool is_only_pair() const { return space_.ranks.size() * space_.microbatches.size() == 1; }

  // The sooner good plans are known, the fewer others have to be compiled: first those with much work at once and few
  // bubbles.
  absl::Status ListPairs() {
    std::vector<int> nearest = space_.microbatches;
    std::stable_sort(nearest.begin(), nearest.end(), [](int a, int b) {
      return std::abs(a - kFewestMicrobatches) < std::abs(b - kFewestMicrobatches);
    });
    absl::Status first;
    int seen = 0;  // microbatches
    for (size_t k = 0; k < nearest.size() && seen == 0; ++k) {
      const absl::Status looked = bounds_.LookAt(nearest[k]);
      if (looked.ok()) seen = nearest[k];
      if (first.ok()) first = looked;
    }
    if (seen == 0) return first;
    for (const int p : space_.ranks) {
      for (const int m : space_.microbatches) pairs_.push_back({p, m});
    }
    const auto estimate = [&](const Pair& pair) {
      return bounds_.SampleSeconds(pair.ranks, seen) * (1 + (pair.ranks - 1.0) / pair.microbatches);
    };
    std::sort(pairs_.begin(), pairs_.end(), [&](const Pair& a, const Pair& b) {
      return std::tuple(estimate(a), a.ranks, -a.microbatches) <
             std::tuple(estimate(b), b.ranks, -b.microbatches);
    });
    return absl::OkStatus();
  }

  bool HasTooMuchWork(const Pair& pair) const {
    return !trials_.MayBeChosen(bounds_.SampleSeconds(pair.ranks, pair.microbatches) * (1 - kRounding));
  }

  // Whether plans of the pair are to be compiled.
  bool Admit(const Pair& pair) {
    absl::Status looked;
    if (!HasTooMuchWork(pair)) looked = bounds_.LookAt(pair.microbatches);
    if (!looked.ok()) {
      if (refused_microbatches_.insert(pair.microbatches).second) trials_.Refuse(Simplest(pair), looked);
      return false;
    }
    if (HasTooMuchWork(pair)) {
      ++result_.passed_over;
      return false;
    }
    const int64_t always = bounds_.always_bytes(), devices = bounds_.DeviceBytes(pair.ranks);
    if (devices <= 0 || always <= devices) return true;
    if (!refused_ranks_.insert(pair.ranks).second) return false;
    PlanCandidate candidate = Simplest(pair);
    if (is_only_pair()) {
      // It does not fit either, and says so in more words.
      trials_.Try(std::move(candidate));
      return false;
    }
    // With these its activations need least.
    candidate.shape.microbatches =
        space_.batch > 0 ? space_.microbatches.back() : space_.microbatches.front();
    const absl::Status refusal = absl::ResourceExhaustedError(
        absl::StrCat("parameters with their gradients and optimizer state take ", FormatSize(always), ", ",
                     Counted(pair.ranks, "device has ", "devices have "), FormatSize(devices)));
    trials_.Refuse(std::move(candidate), WithLeastMemory(refusal, (always + pair.ranks - 1) / pair.ranks));
    return false;
  }

  // The plan that stands for all of a pair.
  PlanCandidate Simplest(const Pair& pair) const {
    const bool infer = options_.mode == Mode::kInfer;
    const std::string schedule = !chooses_schedule() ? options_.schedule : infer ? "infer" : "1f1b";
    const int v = options_.virtual_stages > 0 ? options_.virtual_stages
                                              : FindSchedule(schedule)->default_virtual_stages;
    return {schedule, {pair.ranks, v, pair.microbatches}};
  }

  bool IsOpen(const ScheduleInfo& info) const {
    if (!chooses_schedule()) return info.name == options_.schedule;
    return info.forward_only == (options_.mode == Mode::kInfer) && !info.late_updates;
  }

  std::vector<int> VirtualStages(const ScheduleInfo& info) const {
    if (options_.virtual_stages > 0) return {options_.virtual_stages};
    if (info.forward_only || !chooses_schedule()) return {info.default_virtual_stages};
    std::vector<int> all(kMostVirtualStages);
    std::iota(all.begin(), all.end(), 1);
    return all;
  }

  // Whether memory cannot have shaped the plan: each of its devices could hold all, with as many microbatches in
  // flight as there are stages or microbatches.
  bool IsRoomy(const Module& module, const PlanCandidate& candidate) const {
    for (const Stage& stage : module.stages) {
      if (!stage.recomputed.empty()) return false;
    }
    const ScheduleShape& shape = candidate.shape;
    const int64_t least = bounds_.LeastDeviceBytes(shape.ranks);
    return least == 0 ||
           candidate.peak_bytes * shape.ranks * std::max(shape.stages(), shape.microbatches) <= least;
  }

  // Whether the plan was tried with more microbatches, and is not among the two best even so. Under a limit a plan
  // with more may have to recompute, or be cut unevenly, where that with fewer has not: then its time without a
  // limit counts.
  bool IsSlowerWithMore(const PlanKey& plan) {
    const auto it = with_more_.find(plan);
    if (it == with_more_.end()) return false;
    WithMore& more = it->second;
    if (trials_.MayBeChosen(more.sample_seconds)) return false;
    if (!more.is_unlimited) {
      const absl::StatusOr<std::unique_ptr<Module>> free = maker_.Compile(more.candidate, kNoLimit);
      if (!free.ok()) return false;
      more.is_unlimited = true;
      more.sample_seconds = std::min(
          more.sample_seconds, (*free)->simulation.step_seconds / static_cast<double>(more.candidate.batch));
    }
    return !trials_.MayBeChosen(more.sample_seconds);
  }

  static std::string Described(const Pair& pair) {
    return absl::StrCat(Counted(pair.ranks, "rank", "ranks"), ", ",
                        Counted(pair.microbatches, "microbatch", "microbatches"));
  }

  // Of the candidate that was tried last.
  void RememberBest(const Module& module, const Schedule& schedule, Pair& pair) {
    const absl::StatusOr<Cluster> cluster = maker_.ClusterOf(pair.ranks);
    if (cluster.ok()) trials_.BoundLast(MakespanBound(ScheduleProblemOf(module, *cluster)));
    const PlanCandidate& candidate = trials_.candidates().back();
    if (candidate.step_seconds >= pair.best.step_seconds) return;
    pair.best = {std::make_shared<const Schedule>(schedule), candidate.step_seconds, candidate.order_seconds};
  }

  void TryNamed(Pair& pair) {
    maker_.OnPhase(absl::StrCat("schedules with a name, ", Described(pair)));
    bool tried = false, passed_over = false;
    for (const ScheduleInfo& info : AllSchedules()) {
      if (!IsOpen(info)) continue;
      for (const int v : VirtualStages(info)) {
        const ScheduleShape shape{pair.ranks, v, pair.microbatches};
        if (shape.stages() >= trials_.too_many_stages()) continue;
        const PlanKey plan(pair.ranks, info.name, v);
        if (IsSlowerWithMore(plan)) {
          passed_over = true;
          continue;
        }
        absl::StatusOr<Schedule> schedule = info.generate(shape);
        if (!schedule.ok()) {
          if (not_generated_.ok()) not_generated_ = schedule.status();
          continue;
        }
        tried = true;
        if (const std::unique_ptr<Module> module = trials_.Try({std::string(info.name), shape})) {
          const PlanCandidate& candidate = trials_.candidates().back();
          pair.best_order = std::min(pair.best_order, candidate.order_seconds);
          if (seeks_orders()) RememberBest(*module, *schedule, pair);
          if (space_.batch == 0) with_more_.try_emplace(plan, candidate, IsRoomy(*module, candidate));
        }
        pair.placements[{v, schedule->rank_of_stage}].push_back(*std::move(schedule));
      }
    }
    result_.passed_over += passed_over && !tried;
  }

  void TryFound() {
    std::set<int> searched;
    for (Pair& pair : pairs_) {
      if (pair.placements.empty() || HasTooMuchWork(pair)) continue;
      // With fewer microbatches no order is faster a sample.
      if (space_.batch == 0 && !searched.insert(pair.ranks).second) continue;
      maker_.OnPhase(absl::StrCat("orders that a search finds, ", Described(pair)));
      TryFoundOrders(pair.placements, pair.best, pair.best_order, maker_, trials_);
    }
  }

  absl::Status Refusal() {
    if (result_.candidates.empty()) return not_generated_;
    if (is_only_pair() || trials_.lacking().empty()) return trials_.first_refusal();
    return NothingFits(options_, space_, trials_.lacking(), maker_);
  }

  const CompileOptions& options_;
  const PlanSpace& space_;
  PlanMaker& maker_;
  PlanBounds bounds_;
  PlanTrials trials_;
  std::vector<Pair>
      pairs_;  // the most promising first; of those with equal ranks the one with more microbatches
  AutoPlan result_;
  absl::Status not_generated_;  // the first of the schedules that cannot have such a shape
  std::set<int> refused_ranks_, refused_microbatches_;
  std::map<PlanKey, WithMore> with_more_;  // where the batch grows with the microbatches
};

}  // namespace

absl::StatusOr<AutoPlan> FindAutoPlan(const CompileOptions& options, const PlanSpace& space,
                                      PlanMaker& maker) {
  return Finder(options, space, maker).Run();
}

}  // namespace pipec
