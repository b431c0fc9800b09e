// Bodies for the optimizers of ONNX's training domain (ai.onnx.preview.training, version 1), whose schemas have
// none: the formulas of their documentation as plain ops.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/graph.h"

namespace pipec {

// The function for this node in ONNX's text syntax; nothing if it is no such optimizer, or has a number of operands
// that none has.
std::optional<std::string> TrainingBody(const NodeSpec& spec);

}  // namespace pipec
