// pipec's helper ops as model-local functions of an exported model: what makes a training graph a model that
// every ONNX runtime can run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Whether helper op `op` (domain ai.pipec) has an ONNX body.
bool HasBody(absl::string_view op);

// What a function needs of the moment it runs in, as operands: cli.md's hyperparameters and
// "loss_scale" (float64 scalars), "seed", "step", "updates", "first_sample" (int64 scalars). Empty if the op needs
// nothing.
std::vector<std::string> RunTimeScalars(absl::string_view op);

// The functions that a model's helper nodes need. A body knows its node's types and attributes, so an op has as
// many functions as there are differences between its nodes: Op, Op_2, Op_3, ... (Names, as runtimes lose the
// overloads of functions that functions call.)
class HelperFunctions {
 public:
  // The node that calls the function of `node`, which has a body.
  onnx::NodeProto Call(const Node& node);
  // Adds all functions made so far, without opset imports.
  void AddTo(onnx::ModelProto& model) const;

 private:
  std::vector<onnx::FunctionProto> functions_;
  std::map<std::string, std::string> names_;  // op and serialised body -> name
  std::map<std::string, int> counts_;         // of an op's functions
};

}  // namespace pipec
