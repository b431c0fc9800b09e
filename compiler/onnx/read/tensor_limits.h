// What a tensor of a model may be at most. Beyond these limits products of sizes leave the range of a number,
// and no machine has the memory anyhow.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 44;  // 16 TiB
inline constexpr int kMaxRank = 64;

// InvalidArgument for a negative dimension, more than kMaxRank axes, or a product of the dimensions other
// than 0 that is more than kMaxTensorBytes bytes.
absl::Status CheckTensorLimits(const TensorType& type);

}  // namespace pipec
