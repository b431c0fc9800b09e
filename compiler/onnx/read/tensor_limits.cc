#include "compiler/onnx/read/tensor_limits.h"

#include "absl/strings/str_cat.h"

namespace pipec {

absl::Status CheckTensorLimits(const TensorType& type) {
  if (type.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", type.shape.size(), " axes, at most ", kMaxRank, " are supported"));
  }
  int64_t bytes = SizeOf(type.dtype);
  for (int64_t dim : type.shape) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("has a negative dimension, ", dim));
    // A 0 counts as 1: whoever multiplies the others must not overflow either.
    if (dim != 0 && (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxTensorBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", ToString(type), ": more than 16 TiB, the most a tensor may have"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
