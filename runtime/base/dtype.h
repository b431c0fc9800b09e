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
  // Types of at most 8 bits that weights are quantised to: moved and converted, never computed in.
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// Bytes of one element in memory; 0 for kUndefined and kString. Elements of 4 and 2 bits take a byte each:
// integers as int8 and uint8, float4 as its code.
int64_t SizeOf(DType dtype);

// Bits of one element in a model file, where elements of 4 and 2 bits lie together in bytes.
int BitsInFile(DType dtype);

// "float32", "int64", ... as NumPy and its package ml_dtypes spell them.
absl::string_view Name(DType dtype);

// The inverse of Name; an unknown name is an InvalidArgument.
absl::StatusOr<DType> ParseDType(absl::string_view name);

// float16, bfloat16, float32, float64: the types that carry gradients. Not the smaller floats.
bool IsFloat(DType dtype);

}  // namespace pipec
