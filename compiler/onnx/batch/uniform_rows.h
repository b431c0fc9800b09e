// Values that are the same for every sample of the batch a model was exported with, and so can be had for
// another number of samples.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// Whether `value` provably has equal entries all along `axis`: a constant or parameter whose contents are, or
// what Expand, Tile, ConstantOfShape make of fewer entries, or what an op with a batch axis rule makes of
// operands that are uniform in their turn. False where it is not known. (Batch axes of operands are tried
// out, and put back.)
bool IsUniform(Value* value, int axis);

// `count` entries of a uniform value along `axis`: a constant if `value` is a constant or parameter, else
// nodes at the end of the graph.
absl::StatusOr<Value*> UniformRows(Graph& graph, Value* value, int axis, int64_t count);

}  // namespace pipec
