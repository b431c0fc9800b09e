// The initializers of a model, wherever they are.
#pragma once

#include "absl/functional/function_ref.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Visits the initializers of the main graph, then those of subgraphs, in the main graph and in functions.
// Sparse ones are not visited.
void ForEachInitializer(onnx::ModelProto& model, absl::FunctionRef<void(onnx::TensorProto&)> visit);

// The same for subgraphs only.
void ForEachSubgraphInitializer(onnx::ModelProto& model, absl::FunctionRef<void(onnx::TensorProto&)> visit);

}  // namespace pipec
