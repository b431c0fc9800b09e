#include "passes/compare_cuts.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

double Ratio(const std::vector<double>& loads, const std::vector<double>& best) {
  return *std::max_element(loads.begin(), loads.end()) / *std::max_element(best.begin(), best.end());
}

}  // namespace

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

std::string CompareOwnCut(const std::vector<double>& own, const std::vector<double>& best) {
  return absl::StrFormat(
      "the slowest stage of --cut takes %.2f times as long as with the cut without the flag (modelled)",
      Ratio(own, best));
}

std::string CompareEqualCut(const std::vector<double>& equal, const std::vector<double>& best) {
  const double ratio = Ratio(equal, best);
  if (!(ratio >= 1.005)) return "";
  return absl::StrFormat(
      "with equally many nodes a stage the slowest would take %.2f times as long (modelled)", ratio);
}

}  // namespace pipec
