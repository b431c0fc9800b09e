#include "runtime/executor/finite.h"

#include <cstdint>
#include <cstring>

namespace pipec {
namespace {

// IEEE: all exponent bits set means infinity (no mantissa) or NaN.
template <typename Bits>
NonFiniteKinds Scan(absl::Span<const std::byte> bytes, Bits exponent, Bits mantissa) {
  NonFiniteKinds kinds;
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(Bits));
    if ((bits & exponent) != exponent) continue;
    ((bits & mantissa) != 0 ? kinds.nan : kinds.infinity) = true;
  }
  return kinds;
}

}  // namespace

NonFiniteKinds FindNonFinite(DType dtype, absl::Span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kFloat32:
      return Scan<uint32_t>(bytes, 0x7f800000u, 0x007fffffu);
    case DType::kFloat64:
      return Scan<uint64_t>(bytes, 0x7ff0000000000000u, 0x000fffffffffffffu);
    case DType::kFloat16:
      return Scan<uint16_t>(bytes, 0x7c00u, 0x03ffu);
    case DType::kBFloat16:
      return Scan<uint16_t>(bytes, 0x7f80u, 0x007fu);
    default:
      return {};
  }
}

}  // namespace pipec
