// A float as an integer: truncated towards zero, held to the integer's range, NaN as 0. ONNX leaves values
// out of range open and C++ leaves them undefined.
#pragma once

#include <cmath>
#include <limits>

#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

template <typename T, typename F>
PIPEC_INLINE T Saturate(F x) {
  constexpr F kLeast = static_cast<F>(std::numeric_limits<T>::min());  // a power of two or 0: exact
  const F beyond = std::ldexp(F{1}, std::numeric_limits<T>::digits);   // the first value too large
  if (!(x > kLeast)) return x == x ? std::numeric_limits<T>::min() : T{0};
  if (x >= beyond) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

}  // namespace pipec::cpu
