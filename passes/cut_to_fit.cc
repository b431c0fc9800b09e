#include "passes/cut_to_fit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "passes/cut_in_order.h"
#include "passes/rank_loads.h"

namespace pipec {
namespace {

constexpr double kTooLarge[] = {1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3};  // times the limits
constexpr double kBetter = 1 - 1e-9;

}  // namespace

void CutToFit(const StageItems& items, const StageItems& within, const Cluster& cluster,
              const RecomputePlanner& planner, std::vector<int>& stage_of) {
  if (items.times_on.size() == 1 && cluster.Links().size() == 1) return;
  const std::vector<int64_t>& limits = within.problem.memory_limits;
  const RankLoads loads(items, cluster);
  const auto slowest = [&](const std::vector<int>& cut) {
    const RecomputePlan plan = planner.ToFit(cut, limits);
    if (!plan.fits) return std::numeric_limits<double>::infinity();
    std::vector<double> seconds = loads.Of(cut);
    for (size_t s = 0; s < plan.seconds.size(); ++s)
      seconds[items.problem.rank_of_stage[s]] += plan.seconds[s];
    return *std::max_element(seconds.begin(), seconds.end());
  };
  const std::vector<std::vector<int>> orders = {std::vector<int>(stage_of.size(), 0), stage_of};
  double best = slowest(stage_of);
  StageItems larger = within;
  std::vector<int> cut = stage_of;
  for (const double factor : kTooLarge) {
    for (size_t r = 0; r < limits.size(); ++r) {
      if (limits[r] < std::numeric_limits<int64_t>::max())
        larger.problem.memory_limits[r] = static_cast<int64_t>(factor * static_cast<double>(limits[r]));
    }
    for (const std::vector<int>& order : orders) {
      const std::vector<int> before = cut;
      CutInOrder(larger, cluster, order, cut);
      if (cut == before) continue;
      const double seconds = slowest(cut);
      if (seconds < best * kBetter) best = seconds, stage_of = cut;
    }
  }
}

}  // namespace pipec
