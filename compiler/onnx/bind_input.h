// Contents of an input that --input NAME=range|ones|zeros|FILE.npy turns into a constant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// Row-major bytes of exactly `type`. `what` is range (0, 1, 2, ... along the last axis, the same in every
// row), ones, zeros, or the path of an .npy file of the same type and shape. Errors do not name the input.
absl::StatusOr<std::string> BoundContents(const std::string& what, const TensorType& type);

}  // namespace pipec
