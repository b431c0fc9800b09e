// Arithmetic of integers as the CPU's kernels have it: it wraps around, as NumPy's does. Floats stay what they are.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace pipec::cuda {

template <typename T>
inline constexpr T kLeastOf = std::numeric_limits<T>::lowest();
template <typename T>
inline constexpr T kMostOf = std::numeric_limits<T>::max();

template <typename T>
__device__ __forceinline__ bool IsNegative(T x) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return x < T(0);
  }
}

// Unsigned and of 32 bits at least, where C++ says what happens.
template <typename T, bool = std::is_integral_v<T>>
struct WrappingType {
  using type = T;
};
template <typename T>
struct WrappingType<T, true> {
  using type =
      std::conditional_t<sizeof(T) < 4, uint32_t, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
};
template <typename T>
using Wrapping = typename WrappingType<T>::type;

template <typename T>
__device__ __forceinline__ T WrapAdd(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <typename T>
__device__ __forceinline__ T WrapSub(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <typename T>
__device__ __forceinline__ T WrapMul(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

// The integer that a float is cut off to, held to the integer's range; NaN is 0, as the CPU's saturate.h has it.
template <typename To, typename From>
__device__ __forceinline__ To Saturated(From x) {
  if (!(x == x)) return To(0);
  if (x <= static_cast<From>(kLeastOf<To>)) return kLeastOf<To>;
  if (x >= static_cast<From>(kMostOf<To>)) return kMostOf<To>;
  return static_cast<To>(x);
}

}  // namespace pipec::cuda
