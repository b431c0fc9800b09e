#include "runtime/base/dtype.h"

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

struct Row {
  DType dtype;
  absl::string_view name;
  int64_t bytes;
};

constexpr Row kRows[] = {
    {DType::kUndefined, "undefined", 0},
    {DType::kFloat32, "float32", 4},
    {DType::kUint8, "uint8", 1},
    {DType::kInt8, "int8", 1},
    {DType::kUint16, "uint16", 2},
    {DType::kInt16, "int16", 2},
    {DType::kInt32, "int32", 4},
    {DType::kInt64, "int64", 8},
    {DType::kString, "string", 0},
    {DType::kBool, "bool", 1},
    {DType::kFloat16, "float16", 2},
    {DType::kFloat64, "float64", 8},
    {DType::kUint32, "uint32", 4},
    {DType::kUint64, "uint64", 8},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kFloat8E4M3FN, "float8_e4m3fn", 1},
    {DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1},
    {DType::kFloat8E5M2, "float8_e5m2", 1},
    {DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1},
    {DType::kUint4, "uint4", 1},
    {DType::kInt4, "int4", 1},
    {DType::kFloat4E2M1, "float4_e2m1fn", 1},
    {DType::kFloat8E8M0, "float8_e8m0fnu", 1},
    {DType::kUint2, "uint2", 1},
    {DType::kInt2, "int2", 1},
};

const Row& Find(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  return kRows[0];
}

}  // namespace

int64_t SizeOf(DType dtype) { return Find(dtype).bytes; }

int BitsInFile(DType dtype) {
  switch (dtype) {
    case DType::kUint4:
    case DType::kInt4:
    case DType::kFloat4E2M1:
      return 4;
    case DType::kUint2:
    case DType::kInt2:
      return 2;
    default:
      return static_cast<int>(8 * SizeOf(dtype));
  }
}

absl::string_view Name(DType dtype) { return Find(dtype).name; }

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name && row.dtype != DType::kUndefined) return row.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown element type '", name, "'"));
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

}  // namespace pipec
