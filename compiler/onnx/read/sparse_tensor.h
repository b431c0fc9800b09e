// Tensors of which a model file holds only the elements that are not zero.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/onnx/read/tensor_data.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// The whole tensor, zeros included. Indices are linear ([n]) or coordinates ([n, rank]), ascending, as
// SparseTensorProto says; InvalidArgument if they are not, repeat, or lie outside. Unimplemented where the
// whole tensor would be out of proportion to what the file holds.
absl::StatusOr<Tensor> Densify(const onnx::SparseTensorProto& proto);

}  // namespace pipec
