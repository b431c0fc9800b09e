// Which operands and results of a node have one and the same element type, as its schema says.
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace pipec {

struct TypeGroup {
  std::vector<int> inputs, outputs;  // ascending; absent ones are not among them
};

// The operands and results in float32 or `other` that share the type variable of the first such operand; of a
// helper op all in these types, but for the mask and log_sum_exp of FusedAttention. Empty if there is none, or if
// the variable does not admit `other`.
TypeGroup TypeGroupOf(const Node& node, DType other);

}  // namespace pipec
