#include "passes/round_slots.h"

#include <algorithm>
#include <limits>

namespace pipec {
namespace {

// Places in a list, counted on from round to round: an action of lag l at place k of a list of n stands at t n + l
// n + k for step t.
struct Life {
  int lower = std::numeric_limits<int>::max();
  int upper = -1;

  void Add(int place) {
    lower = std::min(lower, place);
    upper = std::max(upper, place);
  }
};

bool Touches(const std::set<ActionOf>& actions, const Action& action) {
  return actions.contains({action.kind, action.stage, action.microbatch < 0 ? -1 : action.peer_stage});
}

// How many microbatches are kept at once; `round`: places from a step to the next, 0 if there is no next.
int KeptAtOnce(const std::vector<Action>& list, const std::set<ActionOf>& actions, int microbatches, int round) {
  std::vector<Life> lives(microbatches);
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    if (list[k].microbatch >= 0 && Touches(actions, list[k])) lives[list[k].microbatch].Add(list[k].lag * round + k);
  }
  const auto enough = [&](int slots) {
    for (int m = 0; m < microbatches; ++m) {
      const int next = m + slots;
      if (next >= microbatches && round == 0) break;
      if (lives[m].upper >= 0 && lives[next % microbatches].lower + next / microbatches * round <= lives[m].upper)
        return false;
    }
    return true;
  };
  int slots = 1;
  while (!enough(slots)) ++slots;
  return slots;
}

}  // namespace

RoundSlots::RoundSlots(const Module& module, int rank)
    : round_(module.schedule.ranks[rank]),
      eval_(module.eval_schedule.ranks[rank]),
      microbatches_(module.schedule.shape.microbatches),
      versions_(module.schedule.weight_delay[rank] + 1) {}

int RoundSlots::OfMicrobatches(const std::set<ActionOf>& actions) {
  SlotClass slot_class;
  slot_class.rule = SlotRule::kCycle;
  slot_class.slots = std::max(KeptAtOnce(round_, actions, microbatches_, static_cast<int>(round_.size())),
                              KeptAtOnce(eval_, actions, microbatches_, 0));
  for (int m = 0; m < microbatches_; ++m) slot_class.eval.push_back(m % slot_class.slots);
  return ClassOf(std::move(slot_class));
}

int RoundSlots::OfSteps(const std::set<ActionOf>& actions) {
  const int round = static_cast<int>(round_.size());
  Life life;
  for (int k = 0; k < round; ++k) {
    if (Touches(actions, round_[k])) life.Add(round_[k].lag * round + k);
  }
  SlotClass slot_class;
  slot_class.rule = SlotRule::kStep;
  slot_class.slots = life.upper < 0 ? 1 : (life.upper - life.lower) / round + 1;
  return ClassOf(std::move(slot_class));
}

int RoundSlots::OfVersions() {
  SlotClass slot_class;
  slot_class.rule = SlotRule::kVersion;
  slot_class.slots = versions_;
  return ClassOf(std::move(slot_class));
}

int RoundSlots::ClassOf(SlotClass slot_class) {
  // Microbatches always have a class, as what has none is the same for all of them.
  if (slot_class.slots == 1 && slot_class.rule != SlotRule::kCycle) return -1;
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (classes_[c].rule == slot_class.rule && classes_[c].slots == slot_class.slots) return static_cast<int>(c);
  }
  classes_.push_back(std::move(slot_class));
  return static_cast<int>(classes_.size()) - 1;
}

}  // namespace pipec
