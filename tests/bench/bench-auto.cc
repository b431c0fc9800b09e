// What the schedule search gains over the best named schedule that fits, on random costs.
//
//   bench-auto [--seed=S] [--sets=N]
//
// A set: P ranks, uniform in 2..16, M in {P, 2P, 4P}; per 1/P of the model F log-uniform in 1..3, I and W F times
// uniform 0.5..1.5; hops 0..0.3 of the mean F; memory 0.6..2 times what 1f1b needs. Schedules of two stages a rank
// cut each of the P parts into two equal halves. The search looks at one stage a rank, two in a loop, and two in a
// V. The bound is the least of the three placements': nothing that was looked at can beat it. The uneven half: the
// sets with the largest slowest part over mean part.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "compiler/schedule/search/search.h"
#include "tests/bench/figures.h"

namespace pipec::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr int64_t kUnit = 1000;  // bytes that a microbatch keeps in 1/P of the model

class Numbers {
 public:
  explicit Numbers(unsigned seed) : engine_(seed) {}
  double Between(double low, double high) { return low + (high - low) * (engine_() * 0x1p-32); }
  int Below(int n) { return static_cast<int>(engine_() % n); }

 private:
  std::mt19937 engine_;
};

struct CostSet {
  int ranks, microbatches;
  std::vector<StageTimes> times;  // P entries
  double hop;
  int64_t limit;
  double unevenness;
};

CostSet Draw(Numbers& numbers) {
  CostSet set;
  set.ranks = 2 + numbers.Below(15);
  set.microbatches = set.ranks << numbers.Below(3);
  double forward = 0, all = 0, slowest = 0;
  for (int s = 0; s < set.ranks; ++s) {
    const double f = std::exp(numbers.Between(0, std::log(3.0)));
    const double i = f * numbers.Between(0.5, 1.5), w = f * numbers.Between(0.5, 1.5);
    set.times.push_back({f, i, w});
    forward += f;
    all += f + i + w;
    slowest = std::max(slowest, f + i + w);
  }
  set.hop = numbers.Between(0, 0.3) * forward / set.ranks;
  // Rank 0 of 1f1b keeps most: min(P, M) microbatches.
  set.limit = static_cast<int64_t>(numbers.Between(0.6, 2) * std::min(set.ranks, set.microbatches) * kUnit);
  set.unevenness = slowest * set.ranks / all;
  return set;
}

ScheduleProblem Place(const CostSet& set, int virtual_stages, Placement placement) {
  ScheduleProblem problem;
  problem.shape = {set.ranks, virtual_stages, set.microbatches};
  problem.rank_of_stage = PlaceStages(problem.shape, placement);
  for (int s = 0; s < problem.shape.stages(); ++s) {
    const StageTimes& times = set.times[s / virtual_stages];
    problem.times.push_back({times.f / virtual_stages, times.i / virtual_stages, times.w / virtual_stages});
    problem.memory.push_back({.until_weight = kUnit / virtual_stages});
    if (s == 0) continue;
    problem.links.push_back({s - 1, s, set.hop});
    problem.links.push_back({s, s - 1, set.hop});
  }
  problem.limit.assign(set.ranks, set.limit);
  return problem;
}

bool Fits(const Schedule& schedule, const ScheduleProblem& problem) {
  const std::vector<int64_t> kept = MostKept(schedule, problem.memory);
  return *std::max_element(kept.begin(), kept.end()) <= problem.limit[0];
}

struct Outcome {
  CostSet set;
  double named = kNone, found = kNone, bound = kNone, seconds = 0;
  std::string best_named = "none";
};

Outcome Run(const CostSet& set) {
  Outcome outcome{set};
  const Clock::time_point begin = Clock::now();
  for (const auto& [virtual_stages, placement] :
       {std::pair(1, Placement::kLoop), std::pair(2, Placement::kLoop), std::pair(2, Placement::kV)}) {
    const ScheduleProblem problem = Place(set, virtual_stages, placement);
    std::vector<Schedule> named;
    for (const ScheduleInfo& info : AllSchedules()) {
      if (info.forward_only || info.late_updates) continue;
      absl::StatusOr<Schedule> schedule = info.generate(problem.shape);
      if (!schedule.ok() || schedule->rank_of_stage != problem.rank_of_stage || !Fits(*schedule, problem))
        continue;
      const absl::StatusOr<Simulation> simulation = Simulate(*schedule, problem.links, problem.times);
      if (simulation.ok() && simulation->makespan < outcome.named) {
        outcome.named = simulation->makespan;
        outcome.best_named = std::string(info.name);
      }
      named.push_back(*std::move(schedule));
    }
    const absl::StatusOr<FoundSchedule> found = FindBestSchedule(problem, named);
    if (!found.ok()) continue;
    const absl::StatusOr<Simulation> simulation = Simulate(found->schedule, problem.links, problem.times);
    if (!CheckSchedule(found->schedule, {}).ok() || !simulation.ok() || !Fits(found->schedule, problem)) {
      std::fprintf(stderr, "bench-auto: the search returned an unsound schedule\n");
      std::exit(1);
    }
    outcome.found = std::min(outcome.found, simulation->makespan);
    outcome.bound = std::min(outcome.bound, found->bound);
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return outcome;
}

int Main(int argc, char** argv) {
  int seed = 1, sets = 200;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--seed=") && absl::SimpleAtoi(word, &seed)) continue;
    word = argv[i];
    if (absl::ConsumePrefix(&word, "--sets=") && absl::SimpleAtoi(word, &sets) && sets > 0) continue;
    std::fprintf(stderr, "bench-auto: '%s'; usage: bench-auto [--seed=S] [--sets=N]\n", argv[i]);
    return 2;
  }
  Numbers numbers(static_cast<unsigned>(seed));
  std::vector<Outcome> outcomes;
  std::printf("%3s %3s %7s %8s  %-12s %9s %9s %9s %7s %7s %6s\n", "P", "M", "memory", "uneven", "best named",
              "named", "found", "bound", "gain", "gap", "s");
  for (int k = 0; k < sets; ++k) {
    const Outcome& o = outcomes.emplace_back(Run(Draw(numbers)));
    std::printf("%3d %3d %7.2f %8.3f  %-12s %9.2f %9.2f %9.2f %6.1f%% %6.1f%% %6.2f\n", o.set.ranks,
                o.set.microbatches,
                static_cast<double>(o.set.limit) / (std::min(o.set.ranks, o.set.microbatches) * kUnit),
                o.set.unevenness, o.best_named.c_str(), o.named, o.found, o.bound,
                100 * (o.named / o.found - 1), 100 * (o.found / o.bound - 1), o.seconds);
    std::fflush(stdout);
  }
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.set.unevenness > b.set.unevenness; });
  std::vector<double> gains, gaps;
  double slowest = 0, worst_gain = kNone;
  int nothing_named = 0;
  for (size_t k = 0; k < outcomes.size(); ++k) {
    const Outcome& o = outcomes[k];
    slowest = std::max(slowest, o.seconds);
    if (o.found < kNone) gaps.push_back(o.found / o.bound - 1);
    if (o.named == kNone) {
      ++nothing_named;
      continue;
    }
    worst_gain = std::min(worst_gain, o.named / o.found - 1);
    if (k < outcomes.size() / 2) gains.push_back(o.named / o.found - 1);
  }
  // The size that the time limit is stated for.
  CostSet eight = Draw(numbers);
  while (eight.ranks != 8 || eight.microbatches != 32) eight = Draw(numbers);
  std::printf("sets_where_no_named_schedule_fits %d\n", nothing_named);
  std::printf("median_gain_of_the_uneven_half %.2f %%\n", 100 * Median(gains));
  std::printf("least_gain %.2f %%\n", 100 * worst_gain);
  std::printf("median_gap_to_the_bound %.2f %%\n", 100 * Median(gaps));
  std::printf("slowest_set %.2f s\n", slowest);
  std::printf("eight_ranks_32_microbatches %.2f s\n", Run(eight).seconds);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
