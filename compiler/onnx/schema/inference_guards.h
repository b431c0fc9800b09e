// What onnx's own inference functions take for granted: without these checks they allocate what an attribute
// claims, read where nothing is, or accept what no kernel can compute.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace pipec {

// Operands of one node, and its results.
inline constexpr int kMaxOperands = 1 << 16;

// InvalidArgument if a node of this op with `outputs` results must not be given to onnx's inference.
absl::Status CheckBeforeInference(const NodeSpec& spec, int outputs);

}  // namespace pipec
