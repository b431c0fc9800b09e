// Elementary functions of one operand, differentiated through their result where that is known.
#include <cmath>

#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// 1 / (2 sqrt(x)).
Gradients Sqrt(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {b.Emit("Mul", {dy[0], b.Scalar(dy[0]->type.dtype, 0.5)}), b.output(0)})};
}

Gradients Exp(GradientBuilder& b, Span dy, const Wanted&) { return {b.Emit("Mul", {dy[0], b.output(0)})}; }

Gradients Log(GradientBuilder& b, Span dy, const Wanted&) { return {b.Emit("Div", {dy[0], b.input(0)})}; }

// 2 / sqrt(pi) * exp(-x^2).
Gradients Erf(GradientBuilder& b, Span dy, const Wanted&) {
  Value* bell = b.Emit("Exp", {b.Emit("Neg", {b.Emit("Mul", {b.input(0), b.input(0)})})});
  Value* slope = b.Emit("Mul", {bell, b.Scalar(dy[0]->type.dtype, 2 / std::sqrt(M_PI))});
  return {b.Emit("Mul", {dy[0], slope})};
}

const GradientRuleEntry kRules[] = {
    {"Sqrt", "", Sqrt}, {"Exp", "", Exp}, {"Log", "", Log}, {"Erf", "", Erf}};

}  // namespace

absl::Span<const GradientRuleEntry> MathRules() { return kRules; }

}  // namespace pipec
