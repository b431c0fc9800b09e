// Slots: how many microbatches a buffer holds at once, and which slot each microbatch uses.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/module.h"

namespace pipec {

// An action of any microbatch: kind, stage, stage at the other end (-1 unless a message).
using ActionOf = std::tuple<ActionKind, int, int>;

// Gives buffers with the same set of touching actions the same slot class. A buffer is live from the first to
// the last of these actions in the rank's list, and one that is sent for as long as the message is on its way in
// modelled time, or the rank would have to wait until it has gone; slots come from a free list, so there are as many as
// are live at once at most, in training or in evaluation.
class SlotAllocator {
 public:
  // In mode infer only the evaluation list counts.
  SlotAllocator(const Module& module, int rank);

  // Index of the class; made if it is new.
  int ClassOf(const std::set<ActionOf>& actions);
  const std::vector<SlotClass>& classes() const { return classes_; }

 private:
  // Position of each action by microbatch, -1: not in the list; of a send the last action that begins before the message
  // has arrived.
  using Positions = absl::flat_hash_map<ActionOf, std::vector<int>>;
  // `simulated`: the beginning of the list, or nothing if its times are not known.
  Positions Locate(const std::vector<Action>& actions, absl::Span<const SimulatedAction> simulated) const;
  // Slot of each microbatch; `slots` grows to what is needed.
  std::vector<int> Assign(const Positions& positions, const std::set<ActionOf>& actions, int& slots) const;

  int microbatches_;
  bool training_;
  Positions train_, eval_;
  absl::flat_hash_map<std::vector<ActionOf>, int> index_;
  std::vector<SlotClass> classes_;
};

}  // namespace pipec
