// Convolutions in any type, written so that the last axis becomes vector code:
// where oneDNN has none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/convolution.h"

namespace pipec::cpu {

namespace internal {

// Rows of the result worth a thread.
inline int64_t ConvolutionGrain(const Convolution &c, int64_t rows) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(65536 * static_cast<double>(rows) / (1 + c.multiplications())));
}

}  // namespace internal

// `bias` is null or has an element for each channel of Y. Each element adds up
// channel by channel, tap by tap.
template <typename T>
void Convolve(const Convolution &c, const T *x, const T *w, const T *bias, T *y) {
  const auto &[depth, height, width] = c.windows.axes;
  const int64_t channels = c.groups * c.y_channels, rows = c.batch * channels * depth.out * height.out;
  ParallelFor(
      rows, internal::ConvolutionGrain(c, rows),
      [&, &depth = depth, &height = height, &width = width](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t h = row % height.out, d = row / height.out % depth.out;
          const int64_t channel = row / (height.out * depth.out) % channels;
          const int64_t sample = row / (height.out * depth.out * channels), group = channel / c.y_channels;
          T *const to = y + row * width.out;
          std::fill_n(to, width.out, bias == nullptr ? T{0} : bias[channel]);
          const int64_t d_start = depth.Start(d), h_start = height.Start(h);
          for (int64_t k = 0; k < c.x_channels; ++k) {
            const T *const plane = x + ((sample * c.groups + group) * c.x_channels + k) * c.windows.places();
            const T *const taps = w + (channel * c.x_channels + k) * c.windows.taps();
            for (int64_t kd = depth.FirstTap(d_start); kd < depth.EndTap(d_start); ++kd) {
              for (int64_t kh = height.FirstTap(h_start); kh < height.EndTap(h_start); ++kh) {
                const T *const line =
                    plane +
                    ((d_start + kd * depth.dilation) * height.in + h_start + kh * height.dilation) * width.in;
                for (int64_t kw = 0; kw < width.kernel; ++kw) {
                  const T factor = taps[(kd * height.kernel + kh) * width.kernel + kw];
                  const int64_t first = width.FirstWindow(kw), last = width.EndWindow(kw),
                                stride = width.stride;
                  const int64_t place = kw * width.dilation - width.before;
#pragma GCC ivdep
                  for (int64_t i = first; i < last; ++i) to[i] += factor * line[i * stride + place];
                }
              }
            }
          }
        }
      });
}

// Each window adds its taps to where it reads in Convolve.
template <typename T>
void ConvolveTransposed(const Convolution &c, const T *x, const T *w, const T *bias, T *y) {
  const auto &[depth, height, width] = c.windows.axes;
  const int64_t channels = c.groups * c.y_channels, rows = c.batch * channels * depth.in * height.in;
  // The window of an axis whose tap k is at `place`; negative if there is none.
  const auto window_at = [](const WindowAxis &axis, int64_t place, int64_t tap) {
    const int64_t start = place + axis.before - tap * axis.dilation;
    if (start < 0 || start % axis.stride != 0 || start / axis.stride >= axis.out) return int64_t{-1};
    return start / axis.stride;
  };
  ParallelFor(
      rows, internal::ConvolutionGrain(c, rows),
      [&, &depth = depth, &height = height, &width = width](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t h = row % height.in, d = row / height.in % depth.in;
          const int64_t channel = row / (height.in * depth.in) % channels;
          const int64_t sample = row / (height.in * depth.in * channels), group = channel / c.y_channels;
          T *const to = y + row * width.in;
          std::fill_n(to, width.in, bias == nullptr ? T{0} : bias[channel]);
          for (int64_t k = 0; k < c.x_channels; ++k) {
            const int64_t x_channel = group * c.x_channels + k;
            const T *const plane = x + (sample * c.groups * c.x_channels + x_channel) * c.windows.windows();
            const T *const taps = w + (x_channel * c.y_channels + channel % c.y_channels) * c.windows.taps();
            for (int64_t kd = 0; kd < depth.kernel; ++kd) {
              const int64_t window_d = window_at(depth, d, kd);
              for (int64_t kh = 0; kh < height.kernel && window_d >= 0; ++kh) {
                const int64_t window_h = window_at(height, h, kh);
                if (window_h < 0) continue;
                const T *const line = plane + (window_d * height.out + window_h) * width.out;
                for (int64_t kw = 0; kw < width.kernel; ++kw) {
                  const T factor = taps[(kd * height.kernel + kh) * width.kernel + kw];
                  const int64_t first = width.FirstWindow(kw), last = width.EndWindow(kw),
                                stride = width.stride;
                  const int64_t place = kw * width.dilation - width.before;
#pragma GCC ivdep
                  for (int64_t i = first; i < last; ++i) to[i * stride + place] += factor * line[i];
                }
              }
            }
          }
        }
      });
}

}  // namespace pipec::cpu
