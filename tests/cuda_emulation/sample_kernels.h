// Two kernels in the style of the device's own: what nvcc and the emulation both must take. Test-only.
#pragma once

#include <driver_types.h>

#include "absl/status/status.h"

namespace cuda_emulation {

// y[i] = gelu(x[i] + bias[i % columns]); T is float, __half or __nv_bfloat16; 128-bit loads where the addresses
// allow them.
template <typename T>
absl::Status BiasGelu(cudaStream_t stream, const T* x, const T* bias, T* y, int count, int columns);

// Softmax of each row; a block a row, float inside.
template <typename T>
absl::Status Softmax(cudaStream_t stream, const T* x, T* y, int rows, int columns);

}  // namespace cuda_emulation
