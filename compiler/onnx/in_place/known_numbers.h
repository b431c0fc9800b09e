// Numbers that are known while a model is imported: what the course of control flow, places in a sequence and
// shapes are decided by.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/scope.h"

namespace pipec {

// The contents of a constant of integers or booleans in memory, flattened. `what` is told in errors.
// Unimplemented if the tensor is not a constant; InvalidArgument if it is absent or of another type.
absl::StatusOr<std::vector<int64_t>> KnownInts(const Meaning& meaning, absl::string_view what);

// The same for one element, of shape [] or [1]; InvalidArgument for more.
absl::StatusOr<int64_t> KnownInt(const Meaning& meaning, absl::string_view what);

// `axis` counted from the front. InvalidArgument if `rank` axes do not have it.
absl::StatusOr<int64_t> AxisFromFront(int64_t axis, int64_t rank);

}  // namespace pipec
