#include <algorithm>

#include "compiler/partition/blocks.h"
#include "compiler/partition/fixed_order_cut.h"
#include "compiler/partition/solve.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

bool CanRemake(const PartitionItem& item) {
  return std::any_of(item.remake.begin(), item.remake.end(),
                     [](const PartitionRemake& kind) { return kind.bytes > 0; });
}

}  // namespace

int MaxStages(const PartitionProblem& problem) { return MakeBlocks(problem).size(); }

std::vector<double> StageLoads(const PartitionProblem& problem, absl::Span<const int> stage_of) {
  std::vector<double> loads(problem.stages, 0);
  for (size_t i = 0; i < problem.items.size(); ++i) {
    loads[stage_of[i]] += problem.items[i].seconds / SpeedOf(problem, RankOf(problem, stage_of[i]));
  }
  std::vector<int> stages;
  for (const PartitionTensor& tensor : problem.tensors) {
    stages = {stage_of[tensor.producer]};
    for (int consumer : tensor.consumers) stages.push_back(stage_of[consumer]);
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    if (stages.size() == 1) continue;
    for (int stage : stages) loads[stage] += tensor.seconds;
  }
  return loads;
}

std::vector<double> DeviceLoads(const PartitionProblem& problem, absl::Span<const int> stage_of) {
  std::vector<double> loads(Ranks(problem), 0);
  const std::vector<double> stages = StageLoads(problem, stage_of);
  for (int s = 0; s < problem.stages; ++s) loads[RankOf(problem, s)] += stages[s];
  if (!std::any_of(problem.items.begin(), problem.items.end(), CanRemake)) return loads;
  const Blocks blocks = MakeBlocks(problem);
  std::vector<int> by_block;
  for (const Block& block : blocks.blocks) by_block.push_back(stage_of[block.first_item]);
  const std::vector<MemoryUse> kept = UseOfDevices(problem, blocks, by_block);
  for (int rank = 0; rank < Ranks(problem); ++rank) {
    if (MemoryOf(problem, rank) == kNoCap) continue;
    loads[rank] += kept[rank].RemakeSeconds(static_cast<double>(MemoryOf(problem, rank))) / SpeedOf(problem, rank);
  }
  return loads;
}

double StepTime(const PartitionProblem& problem, absl::Span<const int> stage_of) {
  const std::vector<double> devices = DeviceLoads(problem, stage_of);
  const double slowest = *std::max_element(devices.begin(), devices.end());
  if (problem.microbatches == 0) return slowest;
  double sum = 0;
  for (double load : devices) sum += load;
  return sum + (problem.microbatches - 1) * slowest;
}

}  // namespace pipec
