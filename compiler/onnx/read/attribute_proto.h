// Attributes between ONNX's form and the compiler's.
#pragma once

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/attributes.h"

namespace pipec {

// The attribute's value, a sparse tensor as the whole one. Unimplemented for graphs and types; errors do not
// name the attribute.
absl::StatusOr<Attribute> FromProto(const onnx::AttributeProto& proto);

onnx::AttributeProto ToProto(absl::string_view name, const Attribute& attribute);

// Type and contents as a tensor with raw data.
onnx::TensorProto ToProto(const TensorType& type, absl::string_view bytes);

}  // namespace pipec
