#include "compiler/partition/fixed_order_cut.h"

#include <algorithm>
#include <limits>

#include "compiler/partition/cut_candidates.h"
#include "compiler/partition/least_cap.h"
#include "compiler/partition/solve.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

std::vector<int> StageOf(const std::vector<int>& cut, int blocks) {
  std::vector<int> stage_of(blocks);
  for (int s = 0; s < static_cast<int>(cut.size()); ++s)
    std::fill(stage_of.begin() + cut[s], stage_of.end(), s);
  return stage_of;
}

bool Fit(const PartitionProblem& problem, const std::vector<double>& bytes) {
  for (int rank = 0; rank < static_cast<int>(bytes.size()); ++rank) {
    if (bytes[rank] > static_cast<double>(MemoryOf(problem, rank))) return false;
  }
  return true;
}

}  // namespace

std::vector<double> DeviceBytes(const PartitionProblem& problem, const Blocks& blocks,
                                const std::vector<int>& stage_of) {
  const StageRules rules = RulesOf(problem);
  std::vector<double> bytes(Ranks(problem), 0);
  std::vector<std::vector<int>> held(problem.stages);  // by stage: shared parameters
  for (int block = 0; block < blocks.size(); ++block) {
    const int s = stage_of[block];
    double& on_device = bytes[RankOf(problem, s)];
    on_device += BytesOf(blocks.blocks[block].parameter_bytes, blocks.blocks[block].activation_bytes,
                         rules.in_flight[s]);
    for (const SharedUse& use : blocks.shared[block]) {
      if (std::find(held[s].begin(), held[s].end(), use.group) != held[s].end()) continue;
      held[s].push_back(use.group);
      on_device += static_cast<double>(use.bytes);
    }
  }
  return bytes;
}

bool FitsDevices(const PartitionProblem& problem, const Blocks& blocks, const std::vector<int>& stage_of) {
  return Fit(problem, DeviceBytes(problem, blocks, stage_of));
}

FixedOrderCut CutFixedOrder(const PartitionProblem& problem, const Blocks& blocks) {
  const CutSolver solver(problem, blocks);
  StageRules rules = RulesOf(problem);
  FixedOrderCut result;
  if (FitsStageCaps(blocks, rules)) {
    if (const auto cut = solver.Solve(rules)) {
      std::vector<int> stage_of = StageOf(*cut, blocks.size());
      if (FitsDevices(problem, blocks, stage_of)) {
        result.stage_of = std::move(stage_of);
        return result;
      }
    }
  }
  const int64_t least_cap = LeastStageCap(blocks, rules);
  if (OneStageADevice(problem)) {
    result.least_memory = least_cap;
    return result;
  }
  double least = std::numeric_limits<double>::infinity(), best_time = 0;
  for (double factor : {1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0}) {
    std::fill(rules.cap.begin(), rules.cap.end(), static_cast<int64_t>(least_cap * factor));
    std::vector<int> stage_of = StageOf(*solver.Solve(rules), blocks.size());
    const std::vector<double> bytes = DeviceBytes(problem, blocks, stage_of);
    least = std::min(least, *std::max_element(bytes.begin(), bytes.end()));
    if (!Fit(problem, bytes)) continue;
    const double time = StepTime(problem, ByItem(problem, stage_of));
    if (!result.stage_of || time < best_time) {
      result.stage_of = std::move(stage_of);
      best_time = time;
    }
  }
  result.least_memory = static_cast<int64_t>(least);
  return result;
}

}  // namespace pipec
