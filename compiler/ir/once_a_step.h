// What happens once a step. What is made of parameters alone, such as a weight in another type, is the same for all
// microbatches of a step. Where it is kept from the forward to the backward pass, it has one place, and is computed
// in the first microbatch only. Where steps overlap it has a place for each version of the parameters.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/schedule/rounds.h"

namespace pipec {

// Such a buffer is an activation's without a slot class, or with that of the versions: the same place for every
// microbatch.
inline bool IsOnceAStep(const RankMemory& memory, const Buffer& buffer) {
  return buffer.kind == BufferKind::kActivation &&
         (buffer.slot_class < 0 || memory.slot_classes[buffer.slot_class].rule == SlotRule::kVersion);
}

// What the module's ranks and stages have to do once a step (level staged).
OnceAStep OnceAStepOf(const Module& module);

// What REDUCE_GRAD of a stage adds up over the replicas, each in its place: the accumulators of its gradients, in the
// order of the parameters and their uses, and the loss and its weight where the stage computes them.
std::vector<const Value*> SummedOverReplicas(const Module& module, int stage);

// Whether all that the node makes lies in such buffers.
bool RunsOnceAStep(const RankMemory& memory, const Node& node);

}  // namespace pipec
