#include "passes/compare_cuts.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

double Slowest(const PartitionProblem& problem, const std::vector<int>& stage_of) {
  const std::vector<double> loads = DeviceLoads(problem, stage_of);
  return *std::max_element(loads.begin(), loads.end());
}

std::vector<int> EqualCut(const PartitionProblem& problem) {
  const int groups = MaxStages(problem);
  std::vector<int> stage_of;
  int group = -1;
  for (const PartitionItem& item : problem.items) {
    if (stage_of.empty() || !item.glued_to_previous) ++group;
    stage_of.push_back(static_cast<int>(static_cast<int64_t>(group) * problem.stages / groups));
  }
  return stage_of;
}

}  // namespace

std::string CompareOwnCut(const PartitionProblem& problem, const std::vector<int>& own,
                          const std::vector<int>& best) {
  return absl::StrFormat(
      "the slowest stage of --cut takes %.2f times as long as with the cut without the flag (modelled)",
      Slowest(problem, own) / Slowest(problem, best));
}

std::string CompareEqualCut(const PartitionProblem& problem, const std::vector<int>& best) {
  const double ratio = Slowest(problem, EqualCut(problem)) / Slowest(problem, best);
  if (!(ratio >= 1.005)) return "";
  return absl::StrFormat(
      "with equally many nodes a stage the slowest would take %.2f times as long (modelled)", ratio);
}

}  // namespace pipec
