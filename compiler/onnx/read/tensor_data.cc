#include "compiler/onnx/read/tensor_data.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/tensor_limits.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are kept little-endian, as ONNX stores them");

// The elements of a typed field, narrowed to T (ONNX keeps small integers and 16-bit floats in int32_data).
template <typename T, typename Field>
absl::StatusOr<std::string> Narrow(const Field& field) {
  std::string bytes(field.size() * sizeof(T), '\0');
  char* to = bytes.data();
  for (auto element : field) {
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(element)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "has the element ", element, ", which does not fit into ", 8 * sizeof(T), " bits of its type"));
      }
    }
    const T narrow = static_cast<T>(element);
    std::memcpy(to, &narrow, sizeof(T));
    to += sizeof(T);
  }
  return bytes;
}

absl::StatusOr<std::string> TypedData(const onnx::TensorProto& proto) {
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
    case DType::kInt16:
      return Narrow<int16_t>(proto.int32_data());
    case DType::kInt8:
      return Narrow<int8_t>(proto.int32_data());
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return Narrow<uint16_t>(proto.int32_data());
    default:
      return Narrow<uint8_t>(proto.int32_data());
  }
}

// One field of the message has data, at most, and it is in the message.
absl::Status CheckInline(const onnx::TensorProto& proto) {
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return absl::UnimplementedError("keeps its data in another file, which only initializers may");
  }
  const int fields = (proto.raw_data().empty() ? 0 : 1) + (proto.float_data().empty() ? 0 : 1) +
                     (proto.double_data().empty() ? 0 : 1) + (proto.int32_data().empty() ? 0 : 1) +
                     (proto.int64_data().empty() ? 0 : 1) + (proto.uint64_data().empty() ? 0 : 1) +
                     (proto.string_data().empty() ? 0 : 1);
  return fields > 1 ? absl::InvalidArgumentError("has its data twice, in several fields") : absl::OkStatus();
}

absl::StatusOr<Tensor> WithContents(TensorType type, absl::StatusOr<std::string> contents) {
  ASSIGN_OR_RETURN(std::string bytes, std::move(contents));
  const uint64_t wanted = BytesInFile(type.dtype, type.elements());
  if (bytes.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes of data, its type ", ToString(type), " needs ", wanted));
  }
  if (BitsInFile(type.dtype) < 8) bytes = UnpackElements(type.dtype, bytes, type.elements());
  Tensor tensor{std::move(type), {}};
  tensor.data.length = bytes.size();
  tensor.data.bytes = std::make_shared<const std::string>(std::move(bytes));
  return tensor;
}

}  // namespace

DType DTypeOf(int code) {
  return code > 0 && code <= std::numeric_limits<uint8_t>::max() ? static_cast<DType>(code)
                                                                 : DType::kUndefined;
}

std::string ElementTypeName(int code) {
  return onnx::TensorProto::DataType_IsValid(code)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(code))
             : absl::StrCat(code);
}

absl::StatusOr<TensorType> TypeOf(const onnx::TensorProto& proto) {
  TensorType type;
  const int code = proto.data_type();
  type.dtype = DTypeOf(code);
  if (SizeOf(type.dtype) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("element type ", ElementTypeName(code), " is not supported"));
  }
  type.shape.assign(proto.dims().begin(), proto.dims().end());
  RETURN_IF_ERROR(CheckTensorLimits(type));
  return type;
}

absl::StatusOr<Tensor> ReadInlineTensor(const onnx::TensorProto& proto) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(proto));
  RETURN_IF_ERROR(CheckInline(proto));
  return WithContents(std::move(type), proto.raw_data().empty()
                                           ? TypedData(proto)
                                           : absl::StatusOr<std::string>(proto.raw_data()));
}

absl::StatusOr<Tensor> TakeInlineTensor(onnx::TensorProto& proto) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(proto));
  RETURN_IF_ERROR(CheckInline(proto));
  return WithContents(std::move(type), proto.raw_data().empty() ? TypedData(proto)
                                                                : absl::StatusOr<std::string>(
                                                                      std::move(*proto.mutable_raw_data())));
}

}  // namespace pipec
