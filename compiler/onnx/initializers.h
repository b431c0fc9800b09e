// The initializers of a graph and of its subgraphs become parameters and constants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/onnx/external_data.h"
#include "compiler/onnx/pytorch_parameters.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Float initializers become parameters (scalars, sparse ones, and those of a subgraph that have the name of
// another value: constants), other initializers become constants. Weights in external files are referenced,
// never read, but for small integer tensors, which shapes are made of. Errors (InvalidArgument, NotFound,
// Unimplemented) name the initializer.
class Initializers {
 public:
  Initializers(onnx::ModelProto& model, ExternalDataResolver external, Graph& graph);

  // The main graph's; what it holds in memory is taken out of the message. Of what a PyTorch module's
  // state_dict has beside the parameters in use, further names of one become parameters with the same
  // contents.
  absl::Status Add(onnx::GraphProto& graph, const PyTorchParameters& pytorch, Scope& scope);
  // A subgraph's. However often it is imported (in a loop, by calls of a function), its initializers exist
  // once.
  absl::Status AddOnce(const onnx::GraphProto& subgraph, Scope& scope);

  // What the user should know: which float initializers are not parameters.
  std::vector<std::string> Notes() const;

 private:
  absl::StatusOr<Value*> AddTensor(const std::string& name, absl::StatusOr<Tensor> tensor, bool may_learn,
                                   bool kept = false);
  absl::Status AddSparse(const onnx::GraphProto& graph, Scope& scope);

  ExternalDataResolver external_;
  Graph& graph_;
  absl::flat_hash_map<const onnx::GraphProto*, Scope> subgraphs_;
  absl::flat_hash_map<std::string, int> in_subgraphs_;  // how many initializers of subgraphs have this name
  std::vector<std::string> scalars_, sparse_, shared_;
};

}  // namespace pipec
