// Whether the operands of a node have the shapes that its op wants of them, where onnx's own inference does not look
// and a kernel would refuse.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace pipec {

// InvalidArgument names the operand, what it is and what was wanted. Operands whose ranks are no use to an op are
// left to inference.
absl::Status CheckOperandShapes(const NodeSpec& spec);

}  // namespace pipec
