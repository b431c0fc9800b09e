// Slots: how many microbatches a buffer holds at once, which slot each microbatch uses, and which buffers take turns in
// the same slots.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/module.h"

namespace pipec {

// An action of any microbatch: kind, stage, stage at the other end (-1 unless a message).
using ActionOf = std::tuple<ActionKind, int, int>;

// What wants slots: a buffer of `stride` bytes a microbatch, which is live from the first to the last of the actions that
// touch it in the rank's list, and one that is sent for as long as the message is on its way in modelled time, or the rank
// would have to wait until it has gone.
struct SlotUser {
  std::set<ActionOf> actions;
  int64_t stride = 0;
};

struct SlotPool {
  int64_t stride = 0;  // of the largest user
  int slots = 0;
};

struct SlotPlan {
  std::vector<SlotPool> pools;
  std::vector<SlotClass> classes;
  // By user.
  std::vector<int> pool_of, class_of;
};

// Slots come from a free list, so a pool has as many as are live at once at most, in training or in evaluation. Users
// of different stages of the rank share a pool where that saves bytes, as they are full at different times: the largest
// ones choose first. In mode infer only the evaluation list counts.
SlotPlan PlanSlots(const Module& module, int rank, absl::Span<const SlotUser> users);

}  // namespace pipec
