// CUDA's mathematical and bit functions that the C library does not have. The fast ones are here as exact as the
// others.
#pragma once

#include <math.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

template <typename T>
T __ldg(const T* address) {
  return *address;
}

template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}

// Arguments of two types meet in their common type, as in CUDA.
template <typename A, typename B>
std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmin(static_cast<T>(a), static_cast<T>(b));
  return std::min(static_cast<T>(a), static_cast<T>(b));
}
template <typename A, typename B>
std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmax(static_cast<T>(a), static_cast<T>(b));
  return std::max(static_cast<T>(a), static_cast<T>(b));
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

// Out of range they give the nearest integer, of not a number zero (PTX ISA, "cvt").
inline int __float2int_rz(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31f) return INT32_MAX;
  return x < -0x1p31f ? INT32_MIN : static_cast<int>(x);
}
inline int __float2int_rn(float x) { return __float2int_rz(rintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(uint64_t{x} * y >> 32); }
inline int __mulhi(int x, int y) { return static_cast<int>(int64_t{x} * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
