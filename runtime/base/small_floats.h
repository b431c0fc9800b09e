// float16 (IEEE binary16) and bfloat16 as bits: they are stored, moved and converted; arithmetic is done in
// wider types.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"

namespace pipec {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// The nearest float of 1 + exponent + mantissa = 16 bits, ties to even; values too large become infinite.
// From float64, so that float32 and float64 are both rounded once.
template <int kExponentBits>
inline uint16_t RoundTo16Bits(double x) {
  constexpr int kMantissaBits = 15 - kExponentBits;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kMantissaBits;
  const uint16_t sign = static_cast<uint16_t>(std::bit_cast<uint64_t>(x) >> 48) & 0x8000;
  const double size = std::fabs(x);
  if (size != size) return sign | kInfinity | (1 << (kMantissaBits - 1));
  if (size >= std::ldexp(1.0, kBias + 1)) return sign | kInfinity;
  if (size == 0) return sign;
  // Counted in units of the last place of the result (at least the smallest denormal's), rounded by adding
  // 2^52.
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(size) >> 52) - 1023;
  const int unit = (exponent < 1 - kBias ? 1 - kBias : exponent) - kMantissaBits;
  const double units = size * std::bit_cast<double>(static_cast<uint64_t>(1023 - unit) << 52);
  const double scaled = units + 0x1p52 - 0x1p52;
  // An exponent field of 0 is a denormal; else the leading 1 of `scaled` adds one to the field, as does a
  // carry.
  return sign |
         static_cast<uint16_t>((static_cast<uint32_t>(unit + kMantissaBits + kBias - 1) << kMantissaBits) +
                               static_cast<uint32_t>(scaled));
}

inline Float16 ToFloat16(double x) { return {RoundTo16Bits<5>(x)}; }
inline BFloat16 ToBFloat16(double x) { return {RoundTo16Bits<8>(x)}; }

inline float ToFloat(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline float ToFloat(Float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16, size = x.bits & 0x7fff;
  if (size >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (size & 0x3ff) << 13);
  // Shifted into place, the number is too small by 2^(127 - 15), denormals included.
  const float scaled = std::bit_cast<float>(size << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// kFloat16, kBFloat16.
bool IsSmallFloat(DType dtype);

// The float32 values of small floats, laid into `wide`: exact.
void ToFloats(DType dtype, absl::string_view bytes, std::vector<float>& wide);
// The small floats nearest to float32 values, ties to even.
std::string RoundToSmallFloats(DType dtype, absl::Span<const float> values);

}  // namespace pipec
