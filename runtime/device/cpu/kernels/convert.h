// One element as one of another type, as Cast has it. Floats become integers by truncation, held to the
// integer's range (saturate.h); integers that do not fit wrap around; anything but 0 is true.
#pragma once

#include <type_traits>

#include "runtime/device/cpu/kernels/saturate.h"
#include "runtime/device/cpu/kernels/small_floats.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

// The types that take whole bytes and are computed in, or in float32.
using Castable = TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t,
                          uint8_t, bool, Float16, BFloat16>;

template <typename T>
PIPEC_INLINE auto Widened(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

template <typename To, typename From>
PIPEC_INLINE To Convert(From from) {
  const auto x = Widened(from);
  using X = std::remove_const_t<decltype(x)>;
  if constexpr (std::is_same_v<To, Float16>) {
    return ToFloat16(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != X{0};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
    return Saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace pipec::cpu
