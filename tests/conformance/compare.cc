#include "tests/conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

template <typename T>
T Load(absl::string_view bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// A float of 16 bits, by the definition of its fields.
double FromBits(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1, bias = top / 2;
  const int exponent = (bits >> mantissa_bits) & top, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return mantissa != 0 ? NAN : sign * INFINITY;
  const int leading = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(leading + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
}

double Element(DType dtype, absl::string_view bytes, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      return Load<float>(bytes, i);
    case DType::kFloat64:
      return Load<double>(bytes, i);
    case DType::kFloat16:
      return FromBits(Load<uint16_t>(bytes, i), 5);
    default:
      return FromBits(Load<uint16_t>(bytes, i), 8);
  }
}

absl::Status Differs(int64_t i, const std::string& got, const std::string& wanted) {
  return absl::DataLossError(absl::StrCat("element ", i, " is ", got, ", wanted ", wanted));
}

}  // namespace

absl::Status Compare(const TensorType& type, absl::string_view got, absl::string_view wanted) {
  if (got.size() != wanted.size()) {
    return absl::DataLossError(absl::StrCat("has ", got.size(), " bytes, wanted ", wanted.size()));
  }
  if (got == wanted) return absl::OkStatus();
  if (!IsFloat(type.dtype)) {
    const int64_t size = SizeOf(type.dtype);
    for (int64_t i = 0; i < type.elements(); ++i) {
      const absl::string_view a = got.substr(i * size, size), b = wanted.substr(i * size, size);
      if (a != b)
        return Differs(i, absl::StrCat("bytes ", absl::BytesToHexString(a)), absl::BytesToHexString(b));
    }
  }
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double a = Element(type.dtype, got, i), b = Element(type.dtype, wanted, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b))) {
      return Differs(i, absl::StrCat(a), absl::StrCat(b));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
