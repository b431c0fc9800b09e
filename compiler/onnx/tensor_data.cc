#include "compiler/onnx/tensor_data.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are kept little-endian, as ONNX stores them");

// The elements of a typed field, narrowed to T (ONNX keeps small integers and 16-bit floats in int32_data).
template <typename T, typename Field>
std::string Narrow(const Field& field) {
  std::string bytes(field.size() * sizeof(T), '\0');
  char* to = bytes.data();
  for (auto element : field) {
    const T narrow = static_cast<T>(element);
    std::memcpy(to, &narrow, sizeof(T));
    to += sizeof(T);
  }
  return bytes;
}

std::string TypedData(const onnx::TensorProto& proto) {
  switch (static_cast<DType>(proto.data_type())) {
    case DType::kFloat32:
      return Narrow<float>(proto.float_data());
    case DType::kFloat64:
      return Narrow<double>(proto.double_data());
    case DType::kInt64:
      return Narrow<int64_t>(proto.int64_data());
    case DType::kUint64:
      return Narrow<uint64_t>(proto.uint64_data());
    case DType::kUint32:
      return Narrow<uint32_t>(proto.uint64_data());
    case DType::kInt32:
      return Narrow<int32_t>(proto.int32_data());
    case DType::kUint16:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return Narrow<uint16_t>(proto.int32_data());
    default:
      return Narrow<uint8_t>(proto.int32_data());
  }
}

absl::StatusOr<Tensor> WithContents(TensorType type, std::string bytes) {
  if (bytes.size() != type.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("has ", bytes.size(), " bytes of data, its type ",
                                                   ToString(type), " needs ", type.bytes()));
  }
  Tensor tensor{std::move(type), {}};
  tensor.data.length = bytes.size();
  tensor.data.bytes = std::make_shared<const std::string>(std::move(bytes));
  return tensor;
}

}  // namespace

absl::StatusOr<TensorType> TypeOf(const onnx::TensorProto& proto) {
  TensorType type;
  const int code = proto.data_type();
  type.dtype =
      code > 0 && code <= std::numeric_limits<uint8_t>::max() ? static_cast<DType>(code) : DType::kUndefined;
  const int64_t element = SizeOf(type.dtype);
  if (element == 0) {
    return absl::UnimplementedError(
        absl::StrCat("element type ",
                     onnx::TensorProto::DataType_IsValid(code)
                         ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(code))
                         : absl::StrCat(code),
                     " is not supported"));
  }
  int64_t bytes = element;
  for (int64_t dim : proto.dims()) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("has a negative dimension, ", dim));
    if (dim != 0 && __builtin_mul_overflow(bytes, dim, &bytes)) {
      return absl::InvalidArgumentError("has dimensions whose product overflows");
    }
    type.shape.push_back(dim);
  }
  return type;
}

absl::StatusOr<Tensor> ReadInlineTensor(const onnx::TensorProto& proto) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(proto));
  return WithContents(std::move(type), proto.has_raw_data() ? proto.raw_data() : TypedData(proto));
}

absl::StatusOr<Tensor> TakeInlineTensor(onnx::TensorProto& proto) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(proto));
  return WithContents(std::move(type),
                      proto.has_raw_data() ? std::move(*proto.mutable_raw_data()) : TypedData(proto));
}

}  // namespace pipec
