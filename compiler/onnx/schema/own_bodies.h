// Functions that stand in the place of the bodies of ONNX's schemas, with the same values: where those have another
// gradient at a corner than PyTorch, or overflow on the way.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"

namespace pipec {

// A function of ai.onnx in ONNX's text syntax, with references to the op's attributes. None if the schema's body is
// taken.
std::optional<std::string> OwnBody(absl::string_view op);

// For a node: none too where its first operand is no float.
std::optional<std::string> OwnBody(const NodeSpec& spec);

}  // namespace pipec
