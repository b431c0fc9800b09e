// Integers that stand for real numbers: x = (q - zero point) * scale. Scales
// and zero points are one for the whole tensor, one for each place of an axis,
// or one for each block of places.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

using Bytes = TypeList<uint8_t, int8_t>;

// The nearest integer to x, ties to even, plus the zero point, held to T's
// range. NaN: as 0.
template <typename T>
PIPEC_INLINE T Quantised(float x, int32_t zero_point) {
  constexpr float kLeast = static_cast<float>(std::numeric_limits<T>::min()),
                  kMost = static_cast<float>(std::numeric_limits<T>::max());
  // 2^24 and beyond is out of every T's range, zero point or not, and float32
  // adds exactly below.
  const float rounded = std::nearbyint(x) + static_cast<float>(zero_point);
  return static_cast<T>(rounded == rounded ? std::fmin(kMost, std::fmax(kLeast, rounded))
                                           : static_cast<float>(zero_point));
}

// Operand k is absent, or has `dtype` and either one element or one for each of
// `places`. How far a step along the places moves in it: 0 or 1.
inline absl::StatusOr<int64_t> ParameterStep(const KernelSpec &spec, int k, DType dtype, int64_t places) {
  if (!Has(spec, k)) return int64_t{0};
  const TensorType &type = spec.inputs[k].type;
  if (type.dtype != dtype || (type.elements() != 1 && type.elements() != places)) {
    return Invalid(spec, absl::StrCat("input ", k, " is ", ToString(type), ", wanted one or ", places, " of ",
                                      Name(dtype)));
  }
  return int64_t{type.elements() == 1 ? 0 : 1};
}

// to = q - zero point, of a tensor (outer, places, inner) with a zero point for
// each place, or for all (step 0).
template <typename T>
void Centre(const T *q, const T *zero_points, int64_t step, int64_t outer, int64_t places, int64_t inner,
            int32_t *to) {
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(inner, 1));
  ParallelFor(outer * places, grain, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t zero = zero_points == nullptr ? 0 : zero_points[row % places * step];
      for (int64_t i = row * inner; i < (row + 1) * inner; ++i) to[i] = static_cast<int32_t>(q[i]) - zero;
    }
  });
}

}  // namespace pipec::cpu
