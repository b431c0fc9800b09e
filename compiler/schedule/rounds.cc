#include "compiler/schedule/rounds.h"

#include <algorithm>

namespace pipec {

int LargestLag(const Schedule& rounds) {
  int largest = 0;
  for (const auto& list : rounds.ranks) {
    for (const Action& action : list) largest = std::max(largest, action.lag);
  }
  return largest;
}

Unrolled Unroll(const Schedule& rounds, int steps) {
  Unrolled unrolled;
  Schedule& schedule = unrolled.schedule;
  schedule.name = rounds.name;
  schedule.shape = rounds.shape;
  schedule.shape.microbatches *= steps;
  schedule.rank_of_stage = rounds.rank_of_stage;
  schedule.ranks.resize(rounds.ranks.size());
  unrolled.places.resize(rounds.ranks.size());
  const int all_rounds = steps + LargestLag(rounds);
  for (size_t r = 0; r < rounds.ranks.size(); ++r) {
    for (int round = 0; round < all_rounds; ++round) {
      for (int k = 0; k < static_cast<int>(rounds.ranks[r].size()); ++k) {
        Action action = rounds.ranks[r][k];
        const int step = round - action.lag;
        if (step < 0 || step >= steps) continue;
        action.lag = 0;
        if (action.microbatch >= 0) action.microbatch += step * rounds.shape.microbatches;
        schedule.ranks[r].push_back(action);
        unrolled.places[r].push_back({round, k, step});
      }
    }
  }
  return unrolled;
}

}  // namespace pipec
