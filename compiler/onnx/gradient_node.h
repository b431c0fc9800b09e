// Gradient of ai.onnx.preview.training, which names the values that it differentiates in attributes.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/graph.h"
#include "compiler/onnx/scope.h"

namespace pipec {

// Makes ai.pipec::Gradient (x..., y) of such a node (compiler/ops/gradient.cc), and leaves all others as they are.
// Operands are to be the values that the attributes xs and zs name: Unimplemented where the model asks for the
// gradient at another place than its own. InvalidArgument where xs or y name nothing.
absl::Status ResolveGradient(NodeSpec& spec, const Scope& scope);

}  // namespace pipec
