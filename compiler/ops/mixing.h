// Which ops make one result of several samples.
#pragma once

#include "compiler/ir/graph.h"

namespace pipec {

// The operand along whose batch axis the op mixes samples, or picks them by number, so that its results
// depend on how a batch is cut into microbatches; -1 if it keeps samples apart, or that is not known (an op
// that only moves them, a scatter by computed indices). BatchNormalization in training mode mixes, though its
// samples stay where they are. Only ONNX's ops and what is fused of them: the helper losses are sums over samples.
int MixedOperand(const Node& node);

}  // namespace pipec
