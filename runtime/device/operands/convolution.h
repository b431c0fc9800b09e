// Convolutions read from an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/window.h"

namespace pipec {

// X (batch, groups * x_channels, places), W (groups * y_channels, x_channels,
// taps) -> Y (batch, groups * y_channels, windows). Transposed: X has the
// windows, Y the places, and W is (groups * x_channels, y_channels, taps).
struct Convolution {
  Windows windows;
  int64_t batch = 1, groups = 1, x_channels = 1,
          y_channels = 1;  // channels of one group

  double multiplications() const {
    return static_cast<double>(batch * groups * y_channels * windows.windows()) *
           static_cast<double>(x_channels * windows.taps());
  }
};

// From the types of X, W and Y and the attributes, which are ONNX's.
// InvalidArgument if they do not fit.
absl::StatusOr<Convolution> ReadConvolution(const KernelSpec &spec, const Shape &x, const Shape &w,
                                            const Shape &y, bool transposed);

}  // namespace pipec
