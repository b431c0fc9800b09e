// The parameters of torch.nn.LSTM, GRU and RNN, and the operands that ONNX makes of them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/pytorch/parameter_editor.h"

namespace pipec {

// One direction of one layer; without biases their names are "".
struct RecurrentNames {
  std::string weight_ih, weight_hh, bias_ih, bias_hh;
};

bool IsRecurrent(const onnx::NodeProto& node);
// 1 or 2.
int Directions(const onnx::NodeProto& node);
// The names PyTorch has for layer `layer` of the module.
std::vector<RecurrentNames> NamesOfLayer(const std::string& module, int layer, int directions, bool biases);

// Replaces the operands W [directions, gates x hidden, inputs], R and B of an LSTM, GRU or RNN, initializers,
// by PyTorch's parameters and the ops that put them together: PyTorch orders an LSTM's gates i f g o where
// ONNX has i o f g, a GRU's r z n where ONNX has z r n. False, and nothing changed, if the operands are not
// such.
absl::StatusOr<bool> UseRecurrent(ParameterEditor& editor, onnx::NodeProto& node,
                                  const std::vector<RecurrentNames>& directions);

}  // namespace pipec
