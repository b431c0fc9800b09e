// Rows of attention that a mask hides whole, where they are to be zeros: their logarithms are not finite.
#pragma once

#include <driver_types.h>

#include <cstdint>

#include "absl/status/status.h"

namespace pipec::cuda {

// Zeros in the hidden ones of O's rows, of so many bytes each, a multiple of 16.
absl::Status ZeroHiddenRows(cudaStream_t stream, const float* logs, void* o, int64_t rows, int64_t row_bytes);

// The logarithms, but of hidden rows one so large that no score weighs anything beside it.
absl::Status LogsOfSeenRows(cudaStream_t stream, const float* logs, float* seen, int64_t rows);

}  // namespace pipec::cuda
