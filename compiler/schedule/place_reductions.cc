#include <algorithm>

#include "compiler/schedule/schedule.h"

namespace pipec {

void PlaceReductions(const std::vector<bool>& stages, Schedule& schedule) {
  for (std::vector<Action>& list : schedule.ranks) {
    std::vector<Action> placed;
    std::vector<bool> behind(stages.size(),
                             false);  // by stage: its REDUCE_GRAD stands behind what was looked at
    for (auto action = list.rbegin(); action != list.rend(); ++action) {
      const bool makes_gradients = action->kind == ActionKind::kB || action->kind == ActionKind::kW;
      if (makes_gradients && stages[action->stage] && !behind[action->stage]) {
        placed.push_back({ActionKind::kReduceGrad, action->stage});
        behind[action->stage] = true;
      }
      placed.push_back(*action);
    }
    std::reverse(placed.begin(), placed.end());
    list = std::move(placed);
  }
}

}  // namespace pipec
