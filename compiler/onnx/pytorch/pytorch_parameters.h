// What torch.onnx.export did to a module's parameters, undone: in the model that comes out every parameter
// has the name and the layout it has in PyTorch, so that what is trained is a state_dict.
//
//   onnx::MatMul_12 [in,out]              ->  layers.0.fc.weight [out,in], and a Transpose in front of the
//   MatMul a.bias = [0,0,0], used by a and b     ->  a.bias and b.bias: equal values were merged, and would
//   be trained as one W, R, B of an LSTM                    ->  lstm.weight_ih_l0, ..., and the ops that
//   reorder their gates embedding and its transposed copy     ->  one parameter again, under both of its
//   names val_7 = a folded table of cosines     ->  a Constant: nothing to learn (dynamo only, which says
//   what learns)
//
// Sources of the names: the scopes in the node names of the TorchScript exporter (torchscript_parameters.cc),
// the metadata of the dynamo exporter (dynamo_parameters.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/read/external_data.h"
#include "onnx/onnx_pb.h"

namespace pipec {

struct PyTorchParameters {
  // Initializers that no node uses and that have no contents: further names of the tensor they are mapped to.
  absl::flat_hash_map<std::string, std::string> tied;
  // Initializers that no node uses, kept whatever their type because a state_dict has them.
  absl::flat_hash_set<std::string> kept;
  // Float initializers of shape [] that are parameters too; nothing is known of a model that PyTorch did not
  // write.
  std::optional<absl::flat_hash_set<std::string>> scalars;
  // Float initializers that no node uses: their contents are read as constants.
  absl::flat_hash_set<std::string> buffers;
  // Of use to those who train.
  std::vector<std::string> notes;
};

// Changes the main graph. Nothing is renamed in models that PyTorch did not write, and in those with more than
// kCopyLimit (compiler/emit/parameter_placement.h) bytes in initializers, whose weights stay in the user's
// files. The result depends on the model only. Errors: those of `external`, with the initializer's name.
absl::StatusOr<PyTorchParameters> RestorePyTorchParameters(onnx::ModelProto& model,
                                                           ExternalDataResolver& external);

}  // namespace pipec
