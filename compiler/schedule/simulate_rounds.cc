#include <algorithm>

#include "compiler/schedule/rounds.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Simulation> SimulateRounds(const Schedule& rounds, absl::Span<const StageLink> links,
                                          absl::Span<const StageTimes> times) {
  // Long enough for the slowest loop of ranks to set the pace, whatever the start was like.
  const int lag = LargestLag(rounds), first = 4 * (lag + 2), last = 3 * first, steps = last + lag + 4;
  const Unrolled unrolled = Unroll(rounds, steps);
  ASSIGN_OR_RETURN(const Simulation whole, Simulate(unrolled.schedule, links, times));
  Simulation simulation;
  simulation.peak_activations = whole.peak_activations;
  simulation.ranks.resize(rounds.ranks.size());
  double busy = 0, begin = whole.makespan;
  for (size_t r = 0; r < rounds.ranks.size(); ++r) {
    double end_of_first = 0, end_of_last = 0;
    for (size_t k = 0; k < unrolled.places[r].size(); ++k) {
      const RoundPlace& place = unrolled.places[r][k];
      const SimulatedAction& slice = whole.ranks[r][k];
      if (IsCompute(slice.action.kind)) {
        if (place.round == first) end_of_first = slice.end;
        if (place.round == last) end_of_last = slice.end;
      }
      if (place.round != last) continue;
      simulation.ranks[r].push_back({rounds.ranks[r][place.index], slice.start, slice.end});
      if (!IsCompute(slice.action.kind)) continue;
      busy += slice.end - slice.start;
      begin = std::min(begin, slice.start);
    }
    simulation.makespan = std::max(simulation.makespan, (end_of_last - end_of_first) / (last - first));
  }
  for (auto& list : simulation.ranks) {
    for (SimulatedAction& slice : list) {
      slice.start = std::max(0.0, slice.start - begin);
      slice.end = std::max(0.0, slice.end - begin);
    }
  }
  const double total = simulation.makespan * rounds.shape.ranks;
  simulation.step_seconds = simulation.makespan;
  simulation.bubble_ratio = total > 0 ? std::max(0.0, 1 - busy / total) : 0;
  return simulation;
}

}  // namespace pipec
