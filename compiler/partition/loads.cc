#include "compiler/partition/blocks.h"
#include "compiler/partition/solve.h"

namespace pipec {

int MaxStages(const PartitionProblem& problem) { return MakeBlocks(problem).size(); }

std::vector<double> StageLoads(const PartitionProblem& problem, absl::Span<const int> first_item) {
  const int S = first_item.size();
  std::vector<int> stage_of(problem.items.size());
  std::vector<double> loads(S, 0);
  for (int s = 0; s < S; ++s) {
    const int end = s + 1 < S ? first_item[s + 1] : static_cast<int>(problem.items.size());
    for (int i = first_item[s]; i < end; ++i) {
      stage_of[i] = s;
      loads[s] += problem.items[i].seconds;
    }
  }
  for (const PartitionTensor& tensor : problem.tensors) {
    const int from = stage_of[tensor.producer];
    int previous = from;  // consumers ascend, and with them their stages
    for (int consumer : tensor.consumers) {
      if (stage_of[consumer] == previous) continue;
      if (previous == from) loads[from] += tensor.seconds;
      previous = stage_of[consumer];
      loads[previous] += tensor.seconds;
    }
  }
  return loads;
}

}  // namespace pipec
