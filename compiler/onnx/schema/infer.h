// Types of a node's outputs, from its schema (ONNX ops, newest opset) or its row in the op table (helper
// ops).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// `spec.inputs` and `spec.attributes` are read, contents of constant operands included; one type per output
// is returned, `outputs` of them. Errors: InvalidArgument with the schema's words if the operands do not fit;
// Unimplemented if the op is unknown or a dimension of the result depends on data.
absl::StatusOr<std::vector<TensorType>> InferTypes(const NodeSpec& spec, int outputs);

// False for ops that draw random numbers: they must neither be folded nor merged.
bool IsDeterministic(absl::string_view op, absl::string_view domain);

}  // namespace pipec
