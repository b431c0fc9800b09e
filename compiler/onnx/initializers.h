// The initializers of a graph and of its subgraphs become parameters and constants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"
#include "compiler/onnx/read/external_data.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Float initializers become parameters (sparse ones, those of a subgraph that have the name of another value,
// and scalars, unless PyTorch calls them parameters: constants), other initializers become constants. Weights in
// external files are referenced, never read, but for small integer tensors, which shapes are made of. Errors
// (InvalidArgument, NotFound, Unimplemented) name the initializer.
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

  // What the user should know, once the nodes are there: which float initializers are not parameters, and
  // which parameters no node reads.
  std::vector<std::string> Notes() const;

 private:
  absl::StatusOr<Value*> AddTensor(const std::string& name, absl::StatusOr<Tensor> tensor, bool may_learn,
                                   const PyTorchParameters* pytorch = nullptr);
  absl::Status AddSparse(const onnx::GraphProto& graph, Scope& scope);

  ExternalDataResolver external_;
  Graph& graph_;
  absl::flat_hash_map<const onnx::GraphProto*, Scope> subgraphs_;
  absl::flat_hash_map<std::string, int> in_subgraphs_;  // how many initializers of subgraphs have this name
  std::vector<std::string> scalars_, sparse_, shared_;
  // Parameters that need no node: outputs of the model, and what only a state_dict has.
  absl::flat_hash_set<std::string> not_for_nodes_;
};

}  // namespace pipec
