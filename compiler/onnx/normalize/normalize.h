// Older forms of ONNX ops become the newest form, so that the rest of the compiler knows one form of each op.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace pipec {

// One node on its way into the graph.
struct PendingNode {
  Graph& graph;
  NodeSpec spec;  // op, domain "", name, operands, attributes
  int opset;      // the version `spec` is written in
  int outputs;    // how many results are asked for
  // Set by a rule that replaces the node by others: its results. Empty: add the node as `spec` now says.
  std::vector<Value*> results;
};

// Rewrites `node` from `node.opset` to the newest opset. Unimplemented, naming op and opset, where the old
// form has no counterpart.
absl::Status NormalizeOpset(PendingNode& node);

// Whether NormalizeOpset knows what became of the form that `op` had at `opset`.
bool HasNewerForm(absl::string_view op, int opset);

// ONNX's loss ops become the helper ops of compiler/ops/README.md. Any opset.
absl::Status NormalizeLoss(PendingNode& node);

}  // namespace pipec
