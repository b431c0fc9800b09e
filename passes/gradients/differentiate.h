// One step of the chain rule, for whoever walks a graph backwards.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "passes/gradients/gradient.h"

namespace pipec {

// What the builder's node gives to the gradients of its operands, by its rule: null where `wanted` is false or the
// gradient is zero, else of the operand's type. `output_gradients`: null is zero. Unimplemented if there is no rule,
// naming node, op and opset; the rule's own errors likewise.
absl::StatusOr<std::vector<Value*>> DifferentiateNode(const Module& module, GradientBuilder& builder,
                                                      absl::Span<Value* const> output_gradients,
                                                      const std::vector<bool>& wanted);

}  // namespace pipec
