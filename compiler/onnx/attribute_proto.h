// Attributes between ONNX's form and the compiler's.
#pragma once

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/attributes.h"

namespace pipec {

// The attribute's value. Unimplemented for graphs, types and sparse tensors; errors do not name the
// attribute.
absl::StatusOr<Attribute> FromProto(const onnx::AttributeProto& proto);

onnx::AttributeProto ToProto(absl::string_view name, const Attribute& attribute);

// Type and contents as a tensor with raw data.
onnx::TensorProto ToProto(const TensorType& type, absl::string_view bytes);

}  // namespace pipec
