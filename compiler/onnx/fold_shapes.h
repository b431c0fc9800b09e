// Constants that appear while a model is imported: Constant nodes, shapes, and the small arithmetic on shapes
// that decides the types of later nodes.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/import.h"

namespace pipec {

// The constant that a Constant node stands for, whichever of its attributes holds the value.
absl::StatusOr<Value*> AddConstantNode(Graph& graph, const NodeSpec& spec);

// Replaces `node` by constants: Shape and Size always, other deterministic nodes if all operands are
// constants of at most 64 elements, so are the results, and `evaluate` can. `results` (the node's outputs)
// then holds the constants; else nothing changes.
absl::Status FoldSmall(Graph& graph, Node* node, const decltype(ImportOptions::evaluate)& evaluate,
                       std::vector<Value*>& results);

}  // namespace pipec
