// Nodes that add their results to sums over microbatches themselves: those with the attribute `accumulate`
// (runtime/device/operands/sums.h). Their last operands are the sums, one a result, null where the result is; a result
// lies where its sum lies.
#pragma once

#include "compiler/ir/graph.h"

namespace pipec {

inline constexpr char kAccumulate[] = "accumulate";

inline bool Accumulates(const Node& node) { return node.attributes.Int(kAccumulate, 0) != 0; }

// How many operands there are without the sums.
inline int OwnOperands(const Node& node) {
  return static_cast<int>(node.inputs().size() - (Accumulates(node) ? node.outputs().size() : 0));
}

}  // namespace pipec
