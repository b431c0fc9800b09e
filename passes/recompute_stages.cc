#include "passes/recompute_stages.h"

#include <algorithm>
#include <cmath>

#include "compiler/schedule/rounds.h"

namespace pipec {
namespace {

// By stage, as the partitioner counts them.
std::vector<int64_t> StageBytes(const PartitionProblem& problem, const std::vector<int>& stage_of) {
  std::vector<int64_t> bytes(problem.stages, 0);
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const int s = stage_of[i];
    bytes[s] += problem.items[i].parameter_bytes + problem.in_flight[s] * problem.items[i].activation_bytes;
  }
  for (const PartitionShared& shared : problem.shared) {
    std::vector<bool> holds(problem.stages, false);
    for (const int item : shared.items) holds[stage_of[item]] = true;
    for (int s = 0; s < problem.stages; ++s) bytes[s] += holds[s] ? shared.bytes : 0;
  }
  return bytes;
}

}  // namespace

std::vector<int> InFlight(const Schedule& schedule, KeptFrom from) {
  if (schedule.asynchronous()) return InFlight(Unroll(schedule, LargestLag(schedule) + 2).schedule, from);
  std::vector<int> now(schedule.shape.stages(), 0), most = now;
  std::vector<bool> has_w(schedule.shape.stages(), false);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.kind == ActionKind::kW) has_w[action.stage] = true;
    }
  }
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      const bool backward = action.kind == ActionKind::kB || action.kind == ActionKind::kI;
      if (from == KeptFrom::kForward ? action.kind == ActionKind::kF : backward)
        most[action.stage] = std::max(most[action.stage], ++now[action.stage]);
      const bool last = action.kind == ActionKind::kB || action.kind == ActionKind::kW ||
                        (action.kind == ActionKind::kI && !has_w[action.stage]);
      if (last) --now[action.stage];
    }
  }
  return most;
}

PartitionProblem RecomputedEverywhere(const PartitionProblem& problem, const std::vector<StageTimes>& times,
                                      const Schedule& schedule) {
  PartitionProblem recomputed = problem;
  const int items = static_cast<int>(problem.items.size());
  const double share = std::min(1.0, 2 / std::sqrt(static_cast<double>(items) / problem.stages));
  for (int k = 0; k < items; ++k) {
    recomputed.items[k].seconds += times[k].f;
    recomputed.items[k].activation_bytes = static_cast<int64_t>(share * recomputed.items[k].activation_bytes);
  }
  recomputed.in_flight = InFlight(schedule, KeptFrom::kBackward);
  return recomputed;
}

std::vector<bool> StagesThatMustRecompute(const PartitionProblem& problem, const PartitionProblem& recomputed,
                                          const std::vector<int>& stage_of, int64_t memory_limit) {
  const int stages = problem.stages;
  const std::vector<int64_t> kept = StageBytes(problem, stage_of),
                             least = StageBytes(recomputed, stage_of);
  std::vector<int64_t> rank_bytes(stages, 0);  // there are no more ranks than stages
  std::vector<int> by_saving(stages);
  for (int s = 0; s < stages; ++s) {
    by_saving[s] = s;
    rank_bytes[problem.rank_of_stage[s]] += kept[s];
  }
  auto saved = [&](int s) { return kept[s] - least[s]; };
  std::stable_sort(by_saving.begin(), by_saving.end(), [&](int a, int b) { return saved(a) > saved(b); });
  std::vector<bool> must(stages, false);
  for (const int s : by_saving) {
    int64_t& now = rank_bytes[problem.rank_of_stage[s]];
    if (now <= memory_limit || saved(s) <= 0) continue;
    must[s] = true;
    now -= saved(s);
  }
  return must;
}

}  // namespace pipec
