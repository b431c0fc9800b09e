// What a model declares of a value, against what was found.
#pragma once

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// InvalidArgument unless the declared element type, number of axes and dimensions, as far as they are given,
// are those of `type`. Not compared are named dimensions and `any_size_axis` (-1: none). The error does not
// name the value.
absl::Status CheckDeclaredType(const onnx::ValueInfoProto& declared, const TensorType& type,
                               int any_size_axis = -1);

// Whether the value is a float, or nothing says that it is not; whether it is said to have one element.
bool MayBeFloat(const onnx::ValueInfoProto& declared);
bool IsDeclaredScalar(const onnx::ValueInfoProto& declared);

}  // namespace pipec
