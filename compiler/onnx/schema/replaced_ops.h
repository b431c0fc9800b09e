// Ops that leave no node of their own: what the importer puts in their place, as far as a gradient asks.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace pipec {

// What becomes of a small change of an op's float operands.
enum class Flow {
  kPasses,   // it reaches a float result
  kStops,    // it reaches none: integers, bools, or results that do not depend on it
  kUnknown,  // something on its way is not known
};

// Of the ops that leave nodes.
using FlowOfOp = absl::FunctionRef<Flow(absl::string_view op, absl::string_view domain)>;

// Through what stands in the place of `op` (of ai.onnx): the nodes of its schema's function body, or the op that
// superseded it, asked one by one; its operands themselves, where it is control flow or takes sequences and
// optionals apart. kUnknown if nothing stands in its place. A body that depends on operands is looked at for
// operands of several ranks, with and without the optional ones; each that can be built must be known.
Flow FlowThroughReplacement(const std::string& op, FlowOfOp of);

}  // namespace pipec
