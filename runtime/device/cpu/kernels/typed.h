// From an element type known at load to a loop over a C++ type.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace pipec::cpu {

template <typename T>
struct Type {
  using type = T;
};

template <typename... Ts>
struct TypeList {};

using Floats = TypeList<float, double>;
using Integers = TypeList<int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t, uint8_t>;
using Numbers =
    TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t, uint8_t>;
using NumbersAndBool =
    TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t, uint8_t, bool>;
using Bools = TypeList<bool>;

// The DType of a C++ type.
template <typename T>
inline constexpr DType kDType = DType::kUndefined;
template <>
inline constexpr DType kDType<float> = DType::kFloat32;
template <>
inline constexpr DType kDType<double> = DType::kFloat64;
template <>
inline constexpr DType kDType<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDType<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDType<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDType<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDType<uint64_t> = DType::kUint64;
template <>
inline constexpr DType kDType<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDType<uint16_t> = DType::kUint16;
template <>
inline constexpr DType kDType<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDType<bool> = DType::kBool;

// f(Type<T>()) for the T of the list that is `dtype`; Result() if there is none. Result: a pointer, as a rule
// to the loop over T.
template <typename Result, typename... Ts, typename F>
Result ForType(TypeList<Ts...>, DType dtype, F f) {
  Result result{};
  ((kDType<Ts> == dtype ? (result = f(Type<Ts>()), true) : false) || ...);
  return result;
}

// The same over element sizes: movement does not care what it moves. T: uint8_t, uint16_t, uint32_t or
// uint64_t.
template <typename Result, typename F>
Result ForSize(int64_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f(Type<uint8_t>());
    case 2:
      return f(Type<uint16_t>());
    case 4:
      return f(Type<uint32_t>());
    case 8:
      return f(Type<uint64_t>());
    default:
      return Result{};
  }
}

}  // namespace pipec::cpu
