// Sums and maxima over a row in a fixed order that vector code can keep: element i goes to lane i mod kLanes,
// the lanes are combined at the end. So the result depends on the row alone, not on addresses, threads or the
// width of the machine's vectors.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

constexpr int kLanes = 32;

// combine(... combine(first, f(0)) ..., f(n - 1)) in the order above. f may write element i of a row.
template <typename T, typename Combine, typename F>
PIPEC_INLINE T Fold(int64_t n, T first, Combine combine, F f) {
  T lanes[kLanes];
  for (T& lane : lanes) lane = first;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC ivdep
    for (int k = 0; k < kLanes; ++k) lanes[k] = combine(lanes[k], f(i + k));
  }
  const int rest = static_cast<int>(n - i);
  for (int k = 0; k < rest; ++k) lanes[k] = combine(lanes[k], f(i + k));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] = combine(lanes[k], lanes[k + width]);
  }
  return lanes[0];
}

template <typename T, typename F>
PIPEC_INLINE T Sum(int64_t n, F f) {
  return Fold(
      n, T{0}, [](T a, T b) { return a + b; }, f);
}

}  // namespace pipec::cpu
