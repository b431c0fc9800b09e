#include "compiler/partition/device_order.h"

#include <algorithm>
#include <utility>

namespace pipec {
namespace {

// How far boundaries move at a time, and cuts that are kept in mind at each place.
constexpr int kPlaces = 128, kNearest = 2, kFarthest = 8;
constexpr int kLabels = 8;
constexpr int kRounds = 5;
constexpr int64_t kSteps = 5'000'000;  // a round

Blocks InOrder(Blocks blocks) {
  for (int block = 1; block < blocks.size(); ++block) blocks.parents[block] = {block - 1};
  return blocks;
}

}  // namespace

std::vector<int> FirstBlocks(const std::vector<int>& stage_of) {
  std::vector<int> first = {0};
  for (size_t block = 1; block < stage_of.size(); ++block) {
    if (stage_of[block] != stage_of[block - 1]) first.push_back(static_cast<int>(block));
  }
  return first;
}

DeviceOrder::DeviceOrder(const PartitionProblem& problem, Blocks blocks)
    : problem_(problem),
      blocks_(InOrder(std::move(blocks))),
      ideals_(*FindIdeals(blocks_, blocks_.size() + 2)) {}

DeviceCut DeviceOrder::Solve(std::vector<int> places, double known, const DeviceSearch& search) {
  DeviceSolver solver(problem_, blocks_, ideals_, std::move(places), search);
  DeviceCut cut = solver.Solve(0, known);
  steps_ += solver.steps();
  return cut;
}

DeviceCut DeviceOrder::Exact(double known, int64_t steps) {
  return Solve(AllPlaces(ideals_), known, {.steps = steps});
}

std::optional<std::vector<int>> DeviceOrder::Improve(std::vector<int> cut, double known) {
  const int n = blocks_.size();
  const int far = std::clamp(kPlaces / (2 * problem_.stages), kNearest, kFarthest);
  std::optional<std::vector<int>> best;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> places = {0, n};
    for (const int first : cut) {
      for (int place = std::max(1, first - far); place <= std::min(n - 1, first + far); ++place)
        places.push_back(place);
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    DeviceCut found = Solve(std::move(places), known, {.steps = kSteps, .labels = kLabels});
    if (!found.stage_of) break;
    known = found.time;
    cut = FirstBlocks(*found.stage_of);
    best = std::move(found.stage_of);
  }
  return best;
}

}  // namespace pipec
