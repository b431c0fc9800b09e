// What convolutions need beside cuDNN's: operands under other padding, and the bias.
#pragma once

#include <driver_types.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"

namespace pipec::cuda {

// The planes of (samples, channels, places), under other padding.
struct MovedPlanes {
  int64_t batch, channels;
  std::array<int64_t, 3> from, to, shift;  // elements of a plane's axes, fewer than 2^31 in all
};

// Element p of a plane of `to` is element p + shift of the same plane of `from`; where that is outside, it is
// bias[channel], or 0 if bias is null. The elements' size is 2, 4 or 8 bytes, here and below.
absl::Status CopyMoved(cudaStream_t stream, DType dtype, const MovedPlanes& planes, const void* from,
                       const void* bias, void* to);

// y (batch, channels, places) = bias[channel], or 0 if bias is null.
absl::Status FillChannels(cudaStream_t stream, DType dtype, const void* bias, void* y, int64_t batch,
                          int64_t channels, int64_t places);

}  // namespace pipec::cuda
