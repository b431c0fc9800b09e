// What the reductions add up, and in what. T: the elements. Part: what a block of elements is folded in,
// Total: what blocks are folded in. Sums of float32 are folded in blocks of float32, in vectors, and in
// float64 across blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

// Integers are summed modulo 2^64.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename A>
PIPEC_INLINE A WrappingAdd(A a, A b) {
  return static_cast<A>(static_cast<Wrapping<A>>(a) + static_cast<Wrapping<A>>(b));
}
template <typename A>
PIPEC_INLINE A WrappingMultiply(A a, A b) {
  return static_cast<A>(static_cast<Wrapping<A>>(a) * static_cast<Wrapping<A>>(b));
}

template <typename T>
struct SumReduction {
  using Types = Numbers;
  using Part = std::conditional_t<std::is_floating_point_v<T>, T, Wide<T>>;
  using Total = Wide<T>;
  static constexpr Part kFirst = 0;
  static PIPEC_INLINE Part Load(T x) { return x; }
  template <typename A>
  static PIPEC_INLINE A Combine(A a, A b) {
    return WrappingAdd(a, b);
  }
  static T Finish(Total total, int64_t) { return static_cast<T>(total); }
};

template <typename T>
struct MeanReduction : SumReduction<T> {
  using Total = typename SumReduction<T>::Total;
  // Of no elements at all: NaN, and 0 among integers, which have none.
  static T Finish(Total total, int64_t n) {
    if constexpr (std::is_integral_v<T>) return n == 0 ? T{0} : static_cast<T>(total / static_cast<Total>(n));
    return static_cast<T>(total / static_cast<Total>(n));
  }
};

template <typename T>
struct SumSquareReduction : SumReduction<T> {
  using Part = typename SumReduction<T>::Part;
  static PIPEC_INLINE Part Load(T x) { return WrappingMultiply<Part>(x, x); }
};

template <typename T>
struct ProdReduction : SumReduction<T> {
  using Part = Wide<T>;
  using Total = Wide<T>;
  static constexpr Part kFirst = 1;
  static PIPEC_INLINE Part Load(T x) { return x; }
  template <typename A>
  static PIPEC_INLINE A Combine(A a, A b) {
    return WrappingMultiply(a, b);
  }
};

// NaN wins. Of no elements at all: the least value there is.
template <typename T>
struct MaxReduction {
  using Types = NumbersAndBool;
  using Part = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Total = Part;
  using Limits = std::numeric_limits<T>;
  static constexpr Part kFirst =
      Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  static PIPEC_INLINE Part Load(T x) { return x; }
  template <typename A>
  static PIPEC_INLINE A Combine(A a, A b) {
    return a > b || a != a ? a : b;
  }
  static T Finish(Total total, int64_t) { return static_cast<T>(total); }
};

template <typename T>
struct MinReduction : MaxReduction<T> {
  using Part = typename MaxReduction<T>::Part;
  using Limits = std::numeric_limits<T>;
  static constexpr Part kFirst = Limits::has_infinity ? Limits::infinity() : Limits::max();
  template <typename A>
  static PIPEC_INLINE A Combine(A a, A b) {
    return a < b || a != a ? a : b;
  }
};

}  // namespace pipec::cpu
