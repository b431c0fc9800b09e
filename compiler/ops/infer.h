// What the type rules of the helper ops share: checks of operands whose errors name op, node and types.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_info.h"

namespace pipec {

using InferredTypes = absl::StatusOr<std::vector<TensorType>>;

// InvalidArgument: "SliceGrad (node s): operands float32[2,3]: <what>".
absl::Status BadOperands(const NodeSpec& spec, absl::string_view what);

// At least `least` and at most `most` operands, the first `least` of them present.
absl::Status CheckOperands(const NodeSpec& spec, int least, int most);
// At least `least` and at most `most` outputs asked for.
absl::Status CheckOutputs(const NodeSpec& spec, int least, int most);

// Operand k is of a float type.
absl::Status CheckFloat(const NodeSpec& spec, int k);
// Operands j and k have the same type.
absl::Status CheckSameType(const NodeSpec& spec, int j, int k);
// Operand k is a scalar of this type.
absl::Status CheckScalar(const NodeSpec& spec, int k, DType dtype);

// Attribute `axis` counted from the front of operand `k`.
absl::StatusOr<int64_t> CheckedAxis(const NodeSpec& spec, int k, int64_t otherwise);
// Attribute `shape`: that of the operand whose gradient is made.
absl::StatusOr<Shape> ShapeAttribute(const NodeSpec& spec);

const TensorType& TypeOf(const NodeSpec& spec, int k);
bool Present(const NodeSpec& spec, int k);

}  // namespace pipec
