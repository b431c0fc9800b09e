// A module with all its floats in float64, so that gradients can be compared with differences.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Level model. Values of float32, float16 and bfloat16 become float64 with their contents, and so do the types that
// attributes name. Constants that say sizes (the scales of Resize, the depth of OneHot) keep theirs. Cancelled,
// naming the op, if a node has no such form.
absl::Status WidenToFloat64(Graph& graph);

}  // namespace pipec
