#include "compiler/onnx/bind_input.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

constexpr int64_t kMaxBytes = 1 << 30;

template <typename T>
std::string Fill(const TensorType& type, bool counts, int64_t constant) {
  std::string bytes(type.bytes(), '\0');
  const int64_t row = type.shape.empty() ? 1 : std::max<int64_t>(type.shape.back(), 1);
  for (int64_t i = 0; i < type.elements(); ++i) {
    const T value = static_cast<T>(counts ? i % row : constant);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

absl::StatusOr<std::string> FillAny(const TensorType& type, bool counts, int64_t constant) {
  switch (type.dtype) {
    case DType::kFloat32:
      return Fill<float>(type, counts, constant);
    case DType::kFloat64:
      return Fill<double>(type, counts, constant);
    case DType::kInt64:
      return Fill<int64_t>(type, counts, constant);
    case DType::kInt32:
      return Fill<int32_t>(type, counts, constant);
    case DType::kBool:
      return Fill<bool>(type, counts, constant);
    default:
      return absl::UnimplementedError(
          absl::StrCat("inputs of type ", Name(type.dtype), " can only be bound to an .npy file"));
  }
}

absl::string_view NumPyType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "<f4";
    case DType::kFloat64:
      return "<f8";
    case DType::kFloat16:
      return "<f2";
    case DType::kBFloat16:
      return "<V2";  // two bytes, as ml_dtypes saves them: NumPy has no name for it
    case DType::kInt64:
      return "<i8";
    case DType::kInt32:
      return "<i4";
    case DType::kInt16:
      return "<i2";
    case DType::kInt8:
    case DType::kInt4:
    case DType::kInt2:
      return "|i1";
    case DType::kUint64:
      return "<u8";
    case DType::kUint32:
      return "<u4";
    case DType::kUint16:
      return "<u2";
    case DType::kUint8:
      return "|u1";
    case DType::kBool:
      return "|b1";
    default:
      return IsTiny(dtype) ? "|u1" : "";
  }
}

// NumPy's format: magic, version, header length, a Python dictionary, the elements. The dictionary must say
// exactly what is wanted, so it is compared, not parsed.
absl::StatusOr<std::string> ReadNpy(const std::string& path, const TensorType& type) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t prefix = all.size() > 6 && all[6] == 1 ? 10 : 12;
  if (!absl::StartsWith(all, "\x93NUMPY") || all.size() < prefix) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not an .npy file"));
  }
  uint32_t length = 0;
  std::memcpy(&length, all.data() + 8, prefix - 8);
  if (length > all.size() - prefix) return absl::InvalidArgumentError(absl::StrCat(path, ": is truncated"));
  const std::string header = absl::StrReplaceAll(absl::string_view(all).substr(prefix, length), {{" ", ""}});
  const std::string shape =
      absl::StrCat("'shape':(", absl::StrJoin(type.shape, ","), type.shape.size() == 1 ? ",)" : ")");
  const std::string descr = absl::StrCat("'descr':'", NumPyType(type.dtype), "'");
  for (const std::string& wanted : {descr, shape, std::string("'fortran_order':False")}) {
    if (!absl::StrContains(header, wanted)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": header is ", header, ", wanted ", wanted, " for ", ToString(type)));
    }
  }
  std::string bytes = all.substr(prefix + length);
  if (bytes.size() != type.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", bytes.size(), " bytes of data, wanted ", type.bytes()));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> BoundContents(const std::string& what, const TensorType& type) {
  if (type.bytes() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(type), " is above 1 GiB, the most an input may have that becomes a constant"));
  }
  if (what == "range") return FillAny(type, true, 0);
  if (what == "ones") return FillAny(type, false, 1);
  if (what == "zeros") return std::string(type.bytes(), '\0');
  if (absl::EndsWith(what, ".npy")) return ReadNpy(what, type);
  return absl::InvalidArgumentError(absl::StrCat("'", what, "' is not range, ones, zeros or an .npy file"));
}

}  // namespace pipec
