// Adds a node whose result types come from its schema.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// At the end of the graph, with `outputs` results. Errors: InferTypes'.
absl::StatusOr<Node*> EmitNode(Graph& graph, NodeSpec spec, int outputs = 1);

// A constant int64 [n].
Value* AddInts(Graph& graph, absl::string_view name, absl::Span<const int64_t> values);
// A constant int64 [].
Value* AddInt(Graph& graph, absl::string_view name, int64_t value);
// A constant bool [].
Value* AddBool(Graph& graph, absl::string_view name, bool value);
// A constant float32 [].
Value* AddFloat(Graph& graph, absl::string_view name, float value);

}  // namespace pipec
