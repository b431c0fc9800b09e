// Tensors of a model file: their types, and their contents in memory or by reference.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "onnx/onnx_pb.h"

namespace pipec {

struct Tensor {
  TensorType type;
  TensorData data;
};

// The element type with this number; kUndefined if there is none that the compiler knows.
DType DTypeOf(int code);
// "STRING", or the number of one that ONNX does not know.
std::string ElementTypeName(int code);

// Element type and shape. InvalidArgument for a shape that CheckTensorLimits refuses, Unimplemented for an
// element type that the compiler does not know.
absl::StatusOr<TensorType> TypeOf(const onnx::TensorProto& proto);

// A tensor whose contents are in the message itself: raw or in one of the typed fields, also packed as ONNX
// packs 16-bit floats into 32-bit integers, and elements of 4 and 2 bits into bytes. InvalidArgument if their
// number disagrees with the shape, if two fields have data, or if the data is said to lie in another file.
absl::StatusOr<Tensor> ReadInlineTensor(const onnx::TensorProto& proto);

// The same, taking large contents out of the message instead of copying them.
absl::StatusOr<Tensor> TakeInlineTensor(onnx::TensorProto& proto);

}  // namespace pipec
