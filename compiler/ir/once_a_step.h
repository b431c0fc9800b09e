// What is made of parameters alone, such as a weight in another type, is the same for all microbatches of a
// step. Where it is kept from the forward to the backward pass, it has one place, and is computed in the first
// microbatch only. Parameters stay as they are until the step's last backward action: a schedule that updates
// them earlier cannot use it.
#pragma once

#include "compiler/ir/module.h"

namespace pipec {

// Such a buffer is an activation's without a slot class: the same place for every microbatch.
inline bool IsOnceAStep(const Buffer& buffer) {
  return buffer.kind == BufferKind::kActivation && buffer.slot_class < 0;
}

// Whether all that the node makes lies in such buffers.
bool RunsOnceAStep(const RankMemory& memory, const Node& node);

}  // namespace pipec
