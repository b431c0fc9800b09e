// Activations, each one helper op (compiler/ops/README.md has the formulas), and dropout, whose mask is drawn
// again.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Gradients Tanh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("TanhGrad", {dy[0], b.output(0)}, {}, kPipecDomain)};
}

Gradients Sigmoid(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("SigmoidGrad", {dy[0], b.output(0)}, {}, kPipecDomain)};
}

Gradients Relu(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("ReluGrad", {dy[0], b.output(0)}, {}, kPipecDomain)};
}

Gradients Gelu(GradientBuilder& b, Span dy, const Wanted&) {
  Attributes attributes;
  attributes.Set("approximate", b.forward()->attributes.String("approximate", "none"));
  return {b.Emit("GeluGrad", {dy[0], b.input(0)}, std::move(attributes), kPipecDomain)};
}

// The mask is no function of X: a gradient of output 1 does not exist.
Gradients Dropout(GradientBuilder& b, Span dy, const Wanted&) {
  if (!dy[0]) return {nullptr};
  return {b.Emit("DropoutGrad", {dy[0]}, b.forward()->attributes, kPipecDomain)};
}

const GradientRuleEntry kRules[] = {
    {"Tanh", "", Tanh}, {"Sigmoid", "", Sigmoid},           {"Relu", "", Relu},
    {"Gelu", "", Gelu}, {"Dropout", kPipecDomain, Dropout},
};

}  // namespace

absl::Span<const GradientRuleEntry> ActivationRules() { return kRules; }

}  // namespace pipec
