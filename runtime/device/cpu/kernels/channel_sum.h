// A sum over one channel of (samples, channels, places).
#pragma once

#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {

// The sum of f(i) over the elements i of the channel, in float64. Place p of every sample goes to lane p mod
// kLanes, sample by sample, and the lanes are combined once, at the end: channels of few places are common. The
// order depends on the shape alone.
template <typename F>
PIPEC_INLINE double ChannelSum(const AxisView& view, int64_t channel, F f) {
  double lanes[kLanes] = {};
  for (int64_t sample = 0; sample < view.outer; ++sample) {
    int64_t i = (sample * view.length + channel) * view.inner;
    const int64_t end = i + view.inner;
    for (; i + kLanes <= end; i += kLanes) {
#pragma GCC ivdep
      for (int k = 0; k < kLanes; ++k) lanes[k] += f(i + k);
    }
    for (int k = 0; i + k < end; ++k) lanes[k] += f(i + k);
  }
  return Sum<double>(kLanes, [&](int64_t k) { return lanes[k]; });
}

}  // namespace pipec::cpu
