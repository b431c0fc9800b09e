#include "compiler/partition/fixed_order_cut.h"

#include <algorithm>
#include <limits>

#include "compiler/partition/cut_candidates.h"
#include "compiler/partition/device_memory.h"
#include "compiler/partition/device_order.h"
#include "compiler/partition/least_cap.h"
#include "compiler/partition/solve.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

constexpr int64_t kExactSteps = 2'000'000;  // a hundredth of a second or so

std::vector<int> StageOf(const std::vector<int>& cut, int blocks) {
  std::vector<int> stage_of(blocks);
  for (int s = 0; s < static_cast<int>(cut.size()); ++s)
    std::fill(stage_of.begin() + cut[s], stage_of.end(), s);
  return stage_of;
}

bool Fit(const PartitionProblem& problem, const std::vector<MemoryUse>& bytes) {
  for (int rank = 0; rank < static_cast<int>(bytes.size()); ++rank) {
    if (bytes[rank].least() > static_cast<double>(MemoryOf(problem, rank))) return false;
  }
  return true;
}

bool FitWithNothingMadeAgain(const PartitionProblem& problem, const std::vector<MemoryUse>& bytes) {
  for (int rank = 0; rank < static_cast<int>(bytes.size()); ++rank) {
    if (bytes[rank].RemakeSeconds(static_cast<double>(MemoryOf(problem, rank))) > 0) return false;
  }
  return true;
}

// The least of the equal shares that stages have of their devices.
int64_t EqualShare(const PartitionProblem& problem) {
  std::vector<int> stages(Ranks(problem), 0);
  for (int s = 0; s < problem.stages; ++s) ++stages[RankOf(problem, s)];
  int64_t share = kNoCap;
  for (int rank = 0; rank < Ranks(problem); ++rank)
    share = std::min(share, MemoryOf(problem, rank) / std::max(1, stages[rank]));
  return share;
}

}  // namespace

std::vector<MemoryUse> UseOfDevices(const PartitionProblem& problem, const Blocks& blocks,
                                    const std::vector<int>& stage_of) {
  const StageRules rules = RulesOf(problem);
  std::vector<MemoryUse> kept(Ranks(problem));
  std::vector<std::vector<int>> held(problem.stages);  // by stage: shared parameters
  for (int block = 0; block < blocks.size(); ++block) {
    const int s = stage_of[block];
    MemoryUse& on_device = kept[RankOf(problem, s)];
    on_device.Add(blocks.blocks[block].bytes, rules.copies[s]);
    on_device.Add(blocks.blocks[block].remake, rules.copies[s]);
    for (const SharedUse& use : blocks.shared[block]) {
      if (std::find(held[s].begin(), held[s].end(), use.group) != held[s].end()) continue;
      held[s].push_back(use.group);
      on_device.Add(use.bytes, rules.copies[s]);
    }
  }
  return kept;
}

bool FitsDevices(const PartitionProblem& problem, const Blocks& blocks, const std::vector<int>& stage_of) {
  return Fit(problem, UseOfDevices(problem, blocks, stage_of));
}

FixedOrderCut CutFixedOrder(const PartitionProblem& problem, const Blocks& blocks) {
  const CutSolver solver(problem, blocks);
  const StageRules rules = RulesOf(problem);
  FixedOrderCut result;
  double least = std::numeric_limits<double>::infinity(), best_time = least;
  bool all_kept = false;
  // Returns what the fullest device needs.
  const auto offer = [&](const StageRules& capped) {
    double most = 0;
    const auto cut = solver.Solve(capped);
    if (!cut) return std::numeric_limits<double>::infinity();
    std::vector<int> stage_of = StageOf(*cut, blocks.size());
    const std::vector<MemoryUse> bytes = UseOfDevices(problem, blocks, stage_of);
    for (const MemoryUse& kept : bytes) most = std::max(most, kept.least());
    if (!Fit(problem, bytes)) return most;
    all_kept = FitWithNothingMadeAgain(problem, bytes);
    const double time = StepTime(problem, ByItem(problem, stage_of));
    if (time >= best_time) return most;
    result.stage_of = std::move(stage_of);
    best_time = time;
    return most;
  };
  const bool one_stage_a_device = OneStageADevice(problem);
  if (FitsStageCaps(blocks, rules)) offer(rules);
  if (one_stage_a_device) {
    if (!result.stage_of) result.least_memory = LeastStageCap(blocks, rules);
    return result;
  }
  if (!all_kept) {
    const int64_t least_cap = LeastStageCap(blocks, rules);
    StageRules capped = rules;
    const auto offer_cap = [&](int64_t cap) {
      std::fill(capped.cap.begin(), capped.cap.end(), cap);
      return offer(capped);
    };
    for (double factor : {1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0})
      least = std::min(least, offer_cap(static_cast<int64_t>(least_cap * factor)));
    if (EqualShare(problem) > least_cap) offer_cap(EqualShare(problem));
    // Where devices' memories differ, a stage may fill the more the more its device has.
    const bool equal = std::equal(rules.cap.begin() + 1, rules.cap.end(), rules.cap.begin());
    for (double share : {0.9, 0.75, 0.6, 0.5, 0.4, 0.3}) {
      if (equal) break;
      for (int s = 0; s < rules.stages(); ++s) capped.cap[s] = static_cast<int64_t>(share * rules.cap[s]);
      if (FitsStageCaps(blocks, capped)) offer(capped);
    }
  }
  // So far each stage by itself; now their sums.
  DeviceOrder order(problem, blocks);
  DeviceCut exact = order.Exact(best_time, kExactSteps);
  if (exact.stage_of) {
    best_time = exact.time;
    result.stage_of = std::move(exact.stage_of);
  }
  if (!exact.proven && result.stage_of) {
    if (auto better = order.Improve(FirstBlocks(*result.stage_of), best_time)) result.stage_of = std::move(better);
  }
  if (!result.stage_of)
    result.least_memory = LeastDeviceMemory(problem, order.blocks(), static_cast<int64_t>(least), blocks.size() + 2);
  return result;
}

}  // namespace pipec
