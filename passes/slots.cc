#include "passes/slots.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace pipec {

SlotAllocator::SlotAllocator(const Module& module, int rank)
    : microbatches_(module.schedule.shape.microbatches), training_(module.mode == Mode::kTrain) {
  const absl::Span<const SimulatedAction> simulated = module.simulation.ranks[rank];
  if (training_) train_ = Locate(module.schedule.ranks[rank], simulated);
  eval_ = Locate(module.eval_schedule.ranks[rank],
                 training_ ? absl::Span<const SimulatedAction>() : simulated);
}

SlotAllocator::Positions SlotAllocator::Locate(const std::vector<Action>& actions,
                                               absl::Span<const SimulatedAction> simulated) const {
  Positions positions;
  for (int k = 0; k < static_cast<int>(actions.size()); ++k) {
    const Action& action = actions[k];
    if (action.microbatch < 0) continue;
    std::vector<int>& of_kind = positions[{action.kind, action.stage, action.peer_stage}];
    of_kind.resize(microbatches_, -1);
    of_kind[action.microbatch] = k;
    if (action.kind != ActionKind::kSendF && action.kind != ActionKind::kSendB) continue;
    for (int j = k + 1; j < static_cast<int>(simulated.size()); ++j) {
      if (!IsCompute(simulated[j].action.kind)) continue;
      if (simulated[j].start >= simulated[k].end) break;
      of_kind[action.microbatch] = j;
    }
  }
  return positions;
}

std::vector<int> SlotAllocator::Assign(const Positions& positions, const std::set<ActionOf>& actions,
                                       int& slots) const {
  struct Life {
    int lower, upper, microbatch;
  };
  std::vector<Life> lives;
  for (int m = 0; m < microbatches_; ++m) {
    Life life{-1, -1, m};
    for (const ActionOf& action : actions) {
      auto it = positions.find(action);
      if (it == positions.end() || it->second[m] < 0) continue;
      const int position = it->second[m];
      life.lower = life.lower < 0 ? position : std::min(life.lower, position);
      life.upper = std::max(life.upper, position);
    }
    if (life.lower >= 0) lives.push_back(life);
  }
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.lower < b.lower; });
  using End = std::pair<int, int>;  // last position, slot
  std::priority_queue<End, std::vector<End>, std::greater<End>> busy;
  std::set<int> free;
  int used = 0;
  std::vector<int> slot_of(microbatches_, 0);
  for (const Life& life : lives) {
    while (!busy.empty() && busy.top().first < life.lower) {
      free.insert(busy.top().second);
      busy.pop();
    }
    if (free.empty()) free.insert(used++);
    slot_of[life.microbatch] = *free.begin();
    free.erase(free.begin());
    busy.push({life.upper, slot_of[life.microbatch]});
  }
  slots = std::max(slots, used);
  return slot_of;
}

int SlotAllocator::ClassOf(const std::set<ActionOf>& actions) {
  const std::vector<ActionOf> key(actions.begin(), actions.end());
  auto [it, added] = index_.emplace(key, static_cast<int>(classes_.size()));
  if (added) {
    SlotClass slot_class;
    if (training_) slot_class.train = Assign(train_, actions, slot_class.slots);
    slot_class.eval = Assign(eval_, actions, slot_class.slots);
    classes_.push_back(std::move(slot_class));
  }
  return it->second;
}

}  // namespace pipec
