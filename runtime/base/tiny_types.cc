#include "runtime/base/tiny_types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace pipec {
namespace {

// Sign, exponent and mantissa, one after the other from the highest bit.
struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  uint8_t largest;             // code of the largest finite number
  uint8_t infinity;            // 0: there is none
  uint8_t nan;                 // what NaN becomes
  bool unsigned_zero = false;  // the code of -0 is the only NaN
  bool has_nan = true;

  uint8_t sign() const { return static_cast<uint8_t>(1 << (exponent_bits + mantissa_bits)); }
};
constexpr Format kFormats[] = {
    {DType::kFloat8E4M3FN, 4, 3, 7, 0x7e, 0, 0x7f},
    {DType::kFloat8E4M3FNUZ, 4, 3, 8, 0x7f, 0, 0x80, true},
    {DType::kFloat8E5M2, 5, 2, 15, 0x7b, 0x7c, 0x7e},
    {DType::kFloat8E5M2FNUZ, 5, 2, 16, 0x7f, 0, 0x80, true},
    {DType::kFloat4E2M1, 2, 1, 1, 0x07, 0, 0x08, false, false},
};

const Format* FindFormat(DType dtype) {
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

constexpr int kPowerBias = 127;
constexpr uint8_t kPowerNan = 0xff, kLargestPower = 0xfe;

double Decode(const Format& format, uint8_t byte) {
  const uint8_t code = byte & (format.sign() - 1);
  const double sign = byte & format.sign() ? -1 : 1;
  const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (format.unsigned_zero && byte == format.nan) return nan;
  if (code > format.largest) return code == format.infinity ? sign * INFINITY : nan;
  const int exponent = code >> format.mantissa_bits, hidden = 1 << format.mantissa_bits;
  const int mantissa = (code & (hidden - 1)) + (exponent == 0 ? 0 : hidden);
  return sign * std::ldexp(mantissa, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

uint8_t Encode(const Format& format, double x, bool saturate) {
  const uint8_t sign = std::signbit(x) ? format.sign() : 0;
  const uint8_t nan = format.unsigned_zero ? format.nan : sign | format.nan;
  if (x != x) return nan;
  const double size = std::fabs(x);
  int64_t code = std::numeric_limits<int64_t>::max();
  if (size < 0x1p64) {
    // Counted in units of the last place. An exponent field of 0 is a denormal; else the leading 1 of the
    // units adds one to the field, as does a carry.
    const int exponent =
        std::max(static_cast<int>(std::bit_cast<uint64_t>(size) >> 52) - 1023, 1 - format.bias);
    const double units = std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent));
    code = (int64_t{exponent + format.bias - 1} << format.mantissa_bits) + static_cast<int64_t>(units);
  }
  if (code <= format.largest)
    return code == 0 && format.unsigned_zero ? 0 : sign | static_cast<uint8_t>(code);
  if (saturate || !format.has_nan) return sign | format.largest;
  return format.infinity != 0 ? sign | format.infinity : nan;
}

}  // namespace

bool IsTiny(DType dtype) {
  return IsTinyInteger(dtype) || dtype == DType::kFloat8E8M0 || FindFormat(dtype) != nullptr;
}

bool IsTinyInteger(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUint4 || dtype == DType::kInt2 || dtype == DType::kUint2;
}

TinyRange RangeOf(DType tiny_integer) {
  switch (tiny_integer) {
    case DType::kInt4:
      return {-8, 7};
    case DType::kUint4:
      return {0, 15};
    case DType::kInt2:
      return {-2, 1};
    default:
      return {0, 3};
  }
}

uint8_t WrapTiny(DType tiny_integer, int64_t value) {
  const auto [least, most] = RangeOf(tiny_integer);
  const int64_t low = value & (most - least);
  return static_cast<uint8_t>(low > most ? low - (most - least + 1) : low);
}

double DecodeTiny(DType dtype, uint8_t byte) {
  if (IsTinyInteger(dtype)) {
    const uint8_t whole = WrapTiny(dtype, byte);
    return RangeOf(dtype).least < 0 ? static_cast<double>(static_cast<int8_t>(whole)) : whole;
  }
  if (dtype != DType::kFloat8E8M0) return Decode(*FindFormat(dtype), byte);
  return byte == kPowerNan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, byte - kPowerBias);
}

TinyEncoder::TinyEncoder(DType dtype, bool saturate, PowerRounding rounding)
    : dtype_(dtype), saturate_(saturate), rounding_(rounding) {}

uint8_t TinyEncoder::operator()(double x) const {
  if (const Format* format = FindFormat(dtype_)) return Encode(*format, x, saturate_);
  if (dtype_ == DType::kFloat8E8M0) return Power(x);
  // Beyond 2^62 the low bits of a float are 0.
  return std::fabs(x) < 0x1p62 ? WrapTiny(dtype_, static_cast<int64_t>(x)) : 0;
}

// Of a negative number: that of its size, as in onnx's reference.
uint8_t TinyEncoder::Power(double x) const {
  const double size = std::fabs(x);
  if (size != size) return kPowerNan;
  const uint8_t beyond = saturate_ ? kLargestPower : kPowerNan;
  if (std::isinf(size)) return beyond;
  if (size < std::ldexp(1.0, -kPowerBias)) return saturate_ ? 0 : kPowerNan;
  int exponent;
  const double mantissa = 2 * std::frexp(size, &exponent);  // in [1, 2)
  --exponent;
  // From a tie up, as onnx's reference does.
  const bool up = rounding_ == PowerRounding::kUp ? mantissa > 1
                                                  : rounding_ == PowerRounding::kNearest && mantissa >= 1.5;
  const int code = exponent + kPowerBias + (up ? 1 : 0);
  return code > kLargestPower ? beyond : static_cast<uint8_t>(code);
}

uint64_t BytesInFile(DType dtype, int64_t elements) {
  const uint64_t bits = BitsInFile(dtype);
  return bits >= 8 ? elements * (bits / 8) : (static_cast<uint64_t>(elements) + 8 / bits - 1) / (8 / bits);
}

std::string UnpackElements(DType dtype, absl::string_view packed, int64_t elements) {
  const int bits = BitsInFile(dtype), in_byte = 8 / bits;
  std::string bytes(elements, '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const auto whole = static_cast<uint8_t>(packed[i / in_byte]);
    const auto element = static_cast<uint8_t>((whole >> (i % in_byte * bits)) & ((1 << bits) - 1));
    bytes[i] = static_cast<char>(IsTinyInteger(dtype) ? WrapTiny(dtype, element) : element);
  }
  return bytes;
}

std::string PackElements(DType dtype, absl::string_view bytes) {
  const int bits = BitsInFile(dtype), in_byte = 8 / bits;
  std::string packed(BytesInFile(dtype, static_cast<int64_t>(bytes.size())), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int element = static_cast<uint8_t>(bytes[i]) & ((1 << bits) - 1);
    packed[i / in_byte] = static_cast<char>(static_cast<uint8_t>(packed[i / in_byte]) |
                                            element << (i % in_byte * static_cast<size_t>(bits)));
  }
  return packed;
}

}  // namespace pipec
