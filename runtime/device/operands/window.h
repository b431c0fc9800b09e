// The windows that convolutions and pooling slide over the spatial axes of an
// operand (N, C, D1, ..., Dn), n = 1 to 3. Tap k of window o reads place o *
// stride - before + k * dilation of the axis, if it is inside.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"

namespace pipec {

struct WindowAxis {
  int64_t in = 1, out = 1;  // places of the axis, windows
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding

  int64_t Start(int64_t window) const { return window * stride - before; }
  // The taps of a window that are inside: [first, end).
  int64_t FirstTap(int64_t start) const { return start >= 0 ? 0 : (-start + dilation - 1) / dilation; }
  int64_t EndTap(int64_t start) const {
    return start >= in ? 0 : std::min(kernel, (in - start + dilation - 1) / dilation);
  }
  // The windows whose tap k is inside: [first, end).
  int64_t FirstWindow(int64_t tap) const {
    const int64_t at = before - tap * dilation;
    return at <= 0 ? 0 : (at + stride - 1) / stride;
  }
  int64_t EndWindow(int64_t tap) const {
    const int64_t at = in + before - tap * dilation;
    return at <= 0 ? 0 : std::min(out, (at + stride - 1) / stride);
  }
};

struct Windows {
  // The last of them are the operand's; those that it lacks have one place and
  // one window.
  std::array<WindowAxis, 3> axes;
  int rank = 0;  // how many are the operand's

  int64_t places() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t windows() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

// From the attributes strides, dilations, pads and auto_pad, for spatial axes
// of `in` places, `out` windows and `kernel` taps. `ceil_mode`: a last window
// that begins inside but ends outside counts. InvalidArgument if an attribute
// has another length or a value out of range, or if there are other than `out`
// windows; Unimplemented for more than 3 axes.
absl::StatusOr<Windows> ReadWindows(const KernelSpec &spec, absl::Span<const int64_t> in,
                                    absl::Span<const int64_t> out, absl::Span<const int64_t> kernel,
                                    bool ceil_mode);

// The same for ConvTranspose, whose operand has a place for each of the `out`
// windows and whose result is what the windows slide over: attributes
// output_shape and output_padding.
absl::StatusOr<Windows> ReadTransposedWindows(const KernelSpec &spec, absl::Span<const int64_t> in,
                                              absl::Span<const int64_t> out,
                                              absl::Span<const int64_t> kernel);

}  // namespace pipec
