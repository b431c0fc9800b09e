// Element types. The numbers are ONNX's (TensorProto.DataType), so that plans and models agree.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

enum class DType : uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBFloat16 = 16,
};

// Bytes of one element; 0 for kUndefined and kString.
int64_t SizeOf(DType dtype);

// "float32", "int64", ... as NumPy spells them ("bfloat16" is ours).
absl::string_view Name(DType dtype);

// The inverse of Name; an unknown name is an InvalidArgument.
absl::StatusOr<DType> ParseDType(absl::string_view name);

// float16, bfloat16, float32, float64: the types that carry gradients.
bool IsFloat(DType dtype);

}  // namespace pipec
