// Result types that onnx's own inference does not find, or finds wrong, although the operands are constants.
//   Range      operands of shape [1], as AffineGrid's function has them; elements of 16 bits
//   STFT       onesided is 1 where the attribute is absent, as its specification says
//   MaxUnpool  the contents of output_shape
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// Null if the op is none of these or its operands are not known: then onnx is asked. Errors:
// InvalidArgument if the operands do not fit.
absl::StatusOr<std::optional<std::vector<TensorType>>> InferOurselves(const NodeSpec& spec);

}  // namespace pipec
