#include "passes/compare_cuts.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

constexpr double kWorthSaying = 1.005;

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

std::string CompareStep(const std::vector<double>& loads, const std::vector<double>& other_loads, double step,
                        double other) {
  const double ratio = Ratio(loads, other_loads);
  if (!(ratio >= kWorthSaying) || !(other >= step * kWorthSaying)) return "";
  return absl::StrFormat(
      "the slowest stage takes %.3f times as long as it could, in a step that is %.1f %% shorter (simulated)",
      ratio, 100 * (1 - step / other));
}

std::string CompareEqualCut(const std::vector<double>& equal, const std::vector<double>& best) {
  const double ratio = Ratio(equal, best);
  if (!(ratio >= kWorthSaying)) return "";
  return absl::StrFormat(
      "with equally many nodes a stage the slowest would take %.2f times as long (modelled)", ratio);
}

}  // namespace pipec
