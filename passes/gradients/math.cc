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

Gradients Sin(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Mul", {dy[0], b.Emit("Cos", {b.input(0)})})};
}

Gradients Cos(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Neg", {b.Emit("Mul", {dy[0], b.Emit("Sin", {b.input(0)})})})};
}

// 1 + y^2.
Gradients Tan(GradientBuilder& b, Span dy, const Wanted&) {
  Value* square = b.Emit("Mul", {b.output(0), b.output(0)});
  return {b.Emit("Mul", {dy[0], b.Emit("Add", {square, b.Scalar(dy[0]->type.dtype, 1)})})};
}

Gradients Sinh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Mul", {dy[0], b.Emit("Cosh", {b.input(0)})})};
}

Gradients Cosh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Mul", {dy[0], b.Emit("Sinh", {b.input(0)})})};
}

// sign * x^2 + constant.
Value* Quadratic(GradientBuilder& b, double sign, double constant) {
  Value* square = b.Emit("Mul", {b.input(0), b.input(0)});
  if (sign < 0) square = b.Emit("Neg", {square});
  return b.Emit("Add", {square, b.Scalar(b.input(0)->type.dtype, constant)});
}

// 1 / sqrt(1 - x^2).
Gradients Asin(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {dy[0], b.Emit("Sqrt", {Quadratic(b, -1, 1)})})};
}

Gradients Acos(GradientBuilder& b, Span dy, const Wanted& wanted) {
  return {b.Emit("Neg", {Asin(b, dy, wanted)[0]})};
}

// 1 / (1 + x^2).
Gradients Atan(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {dy[0], Quadratic(b, 1, 1)})};
}

// 1 / sqrt(x^2 + 1).
Gradients Asinh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {dy[0], b.Emit("Sqrt", {Quadratic(b, 1, 1)})})};
}

// 1 / sqrt(x^2 - 1).
Gradients Acosh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {dy[0], b.Emit("Sqrt", {Quadratic(b, 1, -1)})})};
}

// 1 / (1 - x^2).
Gradients Atanh(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("Div", {dy[0], Quadratic(b, -1, 1)})};
}

const GradientRuleEntry kRules[] = {
    {"Sqrt", "", Sqrt}, {"Exp", "", Exp},   {"Log", "", Log},     {"Erf", "", Erf},     {"Sin", "", Sin},
    {"Cos", "", Cos},   {"Tan", "", Tan},   {"Sinh", "", Sinh},   {"Cosh", "", Cosh},   {"Asin", "", Asin},
    {"Acos", "", Acos}, {"Atan", "", Atan}, {"Asinh", "", Asinh}, {"Acosh", "", Acosh}, {"Atanh", "", Atanh},
};

}  // namespace

absl::Span<const GradientRuleEntry> MathRules() { return kRules; }

}  // namespace pipec
