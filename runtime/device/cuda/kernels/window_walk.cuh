// The windows of pooling on the GPU.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/operands/window.h"

namespace pipec::cuda {

// A WindowAxis (operands/window.h): tap k of window o is at place o * stride - before + k * dilation.
struct DeviceAxis {
  int in, out, kernel, stride, dilation, before, after;

  __device__ int Start(int window) const { return window * stride - before; }
  // The taps of a window that are inside: [first, end).
  __device__ int FirstTap(int start) const { return start >= 0 ? 0 : (-start + dilation - 1) / dilation; }
  __device__ int EndTap(int start) const {
    return start >= in ? 0 : min(kernel, (in - start + dilation - 1) / dilation);
  }
  // How many taps of a window an average is taken over: those inside, or also those in the padding.
  __device__ int Counted(int start, bool padding) const {
    if (padding) return min(kernel, (in + after - start + dilation - 1) / dilation);
    return max(EndTap(start) - FirstTap(start), 0);
  }
  // The windows that reach a place, with other windows between them if there is dilation: [first, end).
  __device__ int FirstWindow(int place) const {
    const int start = place + before - (kernel - 1) * dilation;
    return start <= 0 ? 0 : (start + stride - 1) / stride;
  }
  __device__ int EndWindow(int place) const { return min(out, (place + before) / stride + 1); }
  __device__ bool Reads(int window, int place) const { return (place - Start(window)) % dilation == 0; }
};

struct DeviceWindows {
  DeviceAxis depth, height, width;
};

// Places and windows of a plane are counted in 31 bits.
inline absl::Status CheckPlaneFits(const KernelSpec& spec, const Windows& windows) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (windows.places() <= kMost && windows.windows() <= kMost) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): a plane of ",
                                               windows.places(), " places and ", windows.windows(),
                                               " windows, the CUDA device counts to ", kMost));
}

// Of a plane that fits.
inline DeviceWindows OnDevice(const Windows& windows) {
  const auto axis = [&](int i) {
    const WindowAxis& own = windows.axes[i];
    return DeviceAxis{static_cast<int>(own.in),       static_cast<int>(own.out),
                      static_cast<int>(own.kernel),   static_cast<int>(own.stride),
                      static_cast<int>(own.dilation), static_cast<int>(own.before),
                      static_cast<int>(own.after)};
  };
  return {axis(0), axis(1), axis(2)};
}

// f(place in the plane) for every tap of the window that is inside, along the last axis first.
template <typename F>
__device__ __forceinline__ void ForEachTap(const DeviceWindows& windows, int d_start, int h_start,
                                           int w_start, F&& f) {
  const auto& [depth, height, width] = windows;
  const int kd_end = depth.EndTap(d_start), kh_end = height.EndTap(h_start), kw_end = width.EndTap(w_start);
  for (int kd = depth.FirstTap(d_start); kd < kd_end; ++kd) {
    for (int kh = height.FirstTap(h_start); kh < kh_end; ++kh) {
      const int line = (d_start + kd * depth.dilation) * height.in + h_start + kh * height.dilation;
      for (int kw = width.FirstTap(w_start); kw < kw_end; ++kw)
        f(line * width.in + w_start + kw * width.dilation);
    }
  }
}

// f(window, its starts along depth, height and width) for every window that reads the place, in order.
template <typename F>
__device__ __forceinline__ void ForEachReader(const DeviceWindows& windows, int place, F&& f) {
  const auto& [depth, height, width] = windows;
  const int line = place / width.in, w = place - line * width.in, d = line / height.in,
            h = line - d * height.in;
  for (int od = depth.FirstWindow(d); od < depth.EndWindow(d); ++od) {
    if (!depth.Reads(od, d)) continue;
    for (int oh = height.FirstWindow(h); oh < height.EndWindow(h); ++oh) {
      if (!height.Reads(oh, h)) continue;
      for (int ow = width.FirstWindow(w); ow < width.EndWindow(w); ++ow) {
        if (!width.Reads(ow, w)) continue;
        f((od * height.out + oh) * width.out + ow, depth.Start(od), height.Start(oh), width.Start(ow));
      }
    }
  }
}

}  // namespace pipec::cuda
