// Where a tensor of the plan lies in the arena, for each microbatch.
#pragma once

#include <cstdint>

#include "runtime/plan/plan.pb.h"

namespace pipec {

// Training steps and evaluation steps are two lists of actions with slot tables of their own.
enum class StepKind : uint8_t { kTrain, kEval };

// Bytes [begin, end) of the arena.
struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;
};

inline bool Overlap(const Region& a, const Region& b) { return a.begin < b.end && b.begin < a.end; }

// When an action runs, as far as it decides where things lie.
struct Moment {
  StepKind kind = StepKind::kTrain;
  int microbatch = -1;   // -1: once a step
  int64_t step = 0;      // asynchronous plans
  int version_slot = 0;  // of the weight version that is read or written
};

// The slot of a class (-1: none) at a moment.
int SlotOf(const plan::RankPlan& rank_plan, int slot_class, const Moment& moment);

// The bytes of a tensor.
Region RegionOf(const plan::RankPlan& rank_plan, int tensor, const Moment& moment);

// Whether two tensors are in one buffer and share bytes there: views and in-place results.
bool ShareBytes(const plan::RankPlan& rank_plan, int tensor, int other);

const google::protobuf::RepeatedPtrField<plan::Action>& ActionsOf(const plan::RankPlan& rank_plan,
                                                                  StepKind kind);

}  // namespace pipec
