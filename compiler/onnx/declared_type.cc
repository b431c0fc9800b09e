#include "compiler/onnx/declared_type.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/read/tensor_data.h"

namespace pipec {
namespace {

std::string ToString(const onnx::TensorShapeProto& shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape.dim(), ",",
                                    [](std::string* out, const onnx::TensorShapeProto::Dimension& dim) {
                                      if (dim.has_dim_value()) {
                                        absl::StrAppend(out, dim.dim_value());
                                      } else {
                                        absl::StrAppend(out, dim.dim_param().empty() ? "?" : dim.dim_param());
                                      }
                                    }),
                      "]");
}

bool Fits(const onnx::TensorShapeProto& declared, const Shape& shape, int any_size_axis) {
  if (declared.dim_size() != shape.size()) return false;
  for (int axis = 0; axis < declared.dim_size(); ++axis) {
    if (axis != any_size_axis && declared.dim(axis).has_dim_value() &&
        declared.dim(axis).dim_value() != shape[axis])
      return false;
  }
  return true;
}

}  // namespace

absl::Status CheckDeclaredType(const onnx::ValueInfoProto& declared, const TensorType& type,
                               int any_size_axis) {
  if (!declared.has_type()) return absl::OkStatus();
  const auto& tensor = declared.type().tensor_type();
  if (tensor.elem_type() != 0 && tensor.elem_type() != static_cast<int>(type.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("is declared as element type ",
                                                   onnx::TensorProto::DataType_IsValid(tensor.elem_type())
                                                       ? Name(DTypeOf(tensor.elem_type()))
                                                       : absl::StrCat(tensor.elem_type()),
                                                   " but is ", pipec::ToString(type)));
  }
  if (tensor.has_shape() && !Fits(tensor.shape(), type.shape, any_size_axis)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is declared with shape ", ToString(tensor.shape()), " but is ", pipec::ToString(type)));
  }
  return absl::OkStatus();
}

bool MayBeFloat(const onnx::ValueInfoProto& declared) {
  if (!declared.has_type()) return true;
  if (!declared.type().has_tensor_type()) return false;
  const int code = declared.type().tensor_type().elem_type();
  return code == 0 || IsFloat(DTypeOf(code));
}

bool IsDeclaredScalar(const onnx::ValueInfoProto& declared) {
  if (!declared.type().tensor_type().has_shape()) return false;
  for (const auto& dim : declared.type().tensor_type().shape().dim()) {
    if (dim.dim_value() != 1) return false;
  }
  return true;
}

}  // namespace pipec
