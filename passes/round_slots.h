// Slots where steps overlap (compiler/schedule/rounds.h): what is kept comes and goes in the order of microbatches
// and of steps, so slots follow one another.
#pragma once

#include <set>
#include <vector>

#include "compiler/ir/module.h"
#include "passes/storage_use.h"

namespace pipec {

class RoundSlots {
 public:
  RoundSlots(const Module& module, int rank);

  // Indices of classes, made where they are new; of steps and versions -1 if one slot is enough.
  // Of a buffer that a microbatch keeps from the first to the last of these actions.
  int OfMicrobatches(const std::set<ActionOf>& actions);
  // Of one that a step keeps, what happens once a step included (kReduceTied and kNorm of stage -1).
  int OfSteps(const std::set<ActionOf>& actions);
  // Of what is made anew by every update.
  int OfVersions();

  const std::vector<SlotClass>& classes() const { return classes_; }

 private:
  int ClassOf(SlotClass slot_class);

  const std::vector<Action>&round_, &eval_;
  const int microbatches_, versions_;
  std::vector<SlotClass> classes_;
};

}  // namespace pipec
