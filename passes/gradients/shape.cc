// Ops that move elements without changing them.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// Reshape, Flatten, Squeeze, Unsqueeze, Identity: the same elements under X's shape.
Gradients Reshape(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  gradients[0] = b.Reshape(dy[0], b.input(0)->type.shape);
  return gradients;
}

// The inverse permutation; without "perm" Transpose reverses the axes.
Gradients Transpose(GradientBuilder& b, Span dy, const Wanted&) {
  const std::vector<int64_t> permutation = b.forward()->attributes.Ints("perm");
  Attributes attributes;
  if (!permutation.empty()) {
    std::vector<int64_t> inverse(permutation.size());
    for (int i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = i;
    attributes.Set("perm", std::move(inverse));
  }
  return {b.Emit("Transpose", {dy[0]}, std::move(attributes))};
}

Gradients Expand(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.SumToShape(dy[0], b.input(0)->type.shape), nullptr};
}

// Every copy adds up: [r0 * d0, ...] as [r0, d0, ...], summed over the r.
Gradients Tile(GradientBuilder& b, Span dy, const Wanted&) {
  const Shape& shape = b.input(0)->type.shape;
  const std::vector<int64_t> repeats = b.ConstantInts(b.input(1));
  if (!b.status().ok()) return {};
  Shape copies;
  std::vector<int64_t> axes;
  for (int i = 0; i < shape.size(); ++i) {
    if (repeats[i] != 1) {
      axes.push_back(copies.size());
      copies.push_back(repeats[i]);
    }
    copies.push_back(shape[i]);
  }
  if (axes.empty()) return {dy[0], nullptr};
  Attributes attributes;
  attributes.Set("keepdims", int64_t{0});
  return {b.Emit("ReduceSum", {b.Reshape(dy[0], copies), b.Ints(axes)}, std::move(attributes)), nullptr};
}

// Between float types; what is cast to integers carries no gradient and never comes here.
Gradients Cast(GradientBuilder& b, Span dy, const Wanted&) {
  Attributes attributes;
  attributes.Set("to", static_cast<int64_t>(b.input(0)->type.dtype));
  return {b.Emit("Cast", {dy[0]}, std::move(attributes))};
}

const GradientRuleEntry kRules[] = {
    {"Reshape", "", Reshape},   {"Flatten", "", Reshape},  {"Squeeze", "", Reshape},
    {"Unsqueeze", "", Reshape}, {"Identity", "", Reshape}, {"Transpose", "", Transpose},
    {"Expand", "", Expand},     {"Tile", "", Tile},        {"Cast", "", Cast},
};

}  // namespace

absl::Span<const GradientRuleEntry> ShapeRules() { return kRules; }

}  // namespace pipec
