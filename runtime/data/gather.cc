// GatherSamples and Widens (data_source.h).
#include <cstring>

#include "runtime/base/tiny_types.h"
#include "runtime/data/data_source.h"

namespace pipec {
namespace {

template <typename To, typename From>
void ConvertAs(const char* from, std::byte* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To wide = static_cast<To>(value);
    std::memcpy(to + i * sizeof(To), &wide, sizeof(To));
  }
}

template <typename From>
void ConvertFrom(const char* from, DType to_dtype, std::byte* to, int64_t count) {
  switch (to_dtype) {
    case DType::kInt16:
      return ConvertAs<int16_t, From>(from, to, count);
    case DType::kInt32:
      return ConvertAs<int32_t, From>(from, to, count);
    case DType::kUint16:
      return ConvertAs<uint16_t, From>(from, to, count);
    case DType::kUint32:
      return ConvertAs<uint32_t, From>(from, to, count);
    case DType::kUint64:
      return ConvertAs<uint64_t, From>(from, to, count);
    default:
      return ConvertAs<int64_t, From>(from, to, count);
  }
}

void Convert(const char* from, DType from_dtype, std::byte* to, DType to_dtype, int64_t count) {
  if (count == 0) return;  // no elements, so perhaps no memory either
  if (from_dtype == to_dtype) {
    std::memcpy(to, from, count * SizeOf(to_dtype));
    return;
  }
  if (IsTinyInteger(to_dtype)) {
    for (int64_t i = 0; i < count; ++i) to[i] = std::byte{WrapTiny(to_dtype, from[i])};
    return;
  }
  if (IsTiny(to_dtype)) {
    std::memcpy(to, from, count);
    return;
  }
  switch (from_dtype) {
    case DType::kUint8:
      return ConvertFrom<uint8_t>(from, to_dtype, to, count);
    case DType::kInt8:
      return ConvertFrom<int8_t>(from, to_dtype, to, count);
    case DType::kUint16:
      return ConvertFrom<uint16_t>(from, to_dtype, to, count);
    case DType::kInt16:
      return ConvertFrom<int16_t>(from, to_dtype, to, count);
    case DType::kUint32:
      return ConvertFrom<uint32_t>(from, to_dtype, to, count);
    default:
      return ConvertFrom<int32_t>(from, to_dtype, to, count);
  }
}

struct Integer {
  bool is_signed;
  int64_t bytes;  // 0: no integer
};
Integer IntegerOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return {false, SizeOf(dtype)};
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return {true, SizeOf(dtype)};
    default:
      return {false, 0};
  }
}

}  // namespace

bool Widens(DType from, DType to) {
  if (from == to) return true;
  // Files have no types of their own for these: integers of a byte, codes of floats (npy.h).
  if (IsTiny(to)) return from == (to == DType::kInt4 || to == DType::kInt2 ? DType::kInt8 : DType::kUint8);
  const Integer a = IntegerOf(from), b = IntegerOf(to);
  return a.bytes > 0 && a.bytes < b.bytes && (b.is_signed || !a.is_signed);
}

void GatherSamples(const char* array, DType array_dtype, int64_t array_samples, const TensorType& type,
                   int batch_axis, absl::Span<const int64_t> samples, std::byte* to) {
  if (batch_axis < 0) return Convert(array, array_dtype, to, type.dtype, type.elements());
  const absl::Span<const int64_t> shape(type.shape);
  const int64_t outer = NumElements(shape.first(batch_axis)),
                inner = NumElements(shape.subspan(batch_axis + 1));
  const int64_t from_bytes = inner * SizeOf(array_dtype), to_bytes = inner * SizeOf(type.dtype);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t sample : samples) {
      if (sample < 0) {
        std::memset(to, 0, to_bytes);
      } else {
        Convert(array + (o * array_samples + sample) * from_bytes, array_dtype, to, type.dtype, inner);
      }
      to += to_bytes;
    }
  }
}

}  // namespace pipec
