// What the dynamo exporter of torch.onnx writes beside a model: which parameters the module has, and for each
// node the call in PyTorch that it comes from.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// A line of the signature: "p_fc_weight: PARAMETER target='fc.weight'".
struct FxParameter {
  std::string name;         // in the state_dict
  bool learns = false;      // a parameter, not a buffer
  bool persistent = false;  // in the state_dict
};
// By what calls say instead, "p_fc_weight".
using FxSignature = absl::flat_hash_map<std::string, FxParameter>;
FxSignature ParseSignature(absl::string_view text);

// "%linear : [...] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight,
// %p_fc_bias), ...)"
struct FxCall {
  std::string result;  // linear
  std::string target;  // aten.linear.default
  // By position. What is no value, such as a number, is "".
  std::vector<std::string> arguments;
  // Of an argument that is a list, at its position.
  std::vector<std::vector<std::string>> lists;
  std::string module;  // the innermost that makes the call, "layers.0.fc"
};
// Of a node without such metadata: all empty.
FxCall CallOf(const onnx::NodeProto& node);

}  // namespace pipec
