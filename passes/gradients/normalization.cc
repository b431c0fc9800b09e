// Softmax and LayerNormalization, each one or two helper ops (compiler/ops/README.md has the formulas).
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Attributes Axis(GradientBuilder& b) {
  Attributes attributes;
  attributes.Set("axis", b.forward()->attributes.Int("axis", -1));
  return attributes;
}

Gradients Softmax(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("SoftmaxGrad", {dy[0], b.output(0)}, Axis(b), kPipecDomain)};
}

Gradients LogSoftmax(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("LogSoftmaxGrad", {dy[0], b.output(0)}, Axis(b), kPipecDomain)};
}

// Needs the statistics of the forward pass, which exporters leave out. Scale and bias may have fewer axes
// than the normalised part of X, or axes of size 1.
Gradients LayerNormalization(GradientBuilder& b, Span dy, const Wanted& wanted) {
  for (int i = 1; i < dy.size(); ++i) {
    if (dy[i]) b.Fail(absl::UnimplementedError("the gradient of the outputs Mean and InvStdDev"));
  }
  Gradients gradients(wanted.size());
  if (wanted[0] || wanted[1]) b.RequireOutput(2);
  Value* mean = b.output(1);
  Value* inv_std_dev = b.output(2);
  if (!mean || !inv_std_dev) {
    if (wanted[0] || wanted[1]) b.Fail(absl::UnimplementedError("one of Mean and InvStdDev is absent"));
  }
  if (wanted[0]) {
    const Shape& shape = b.input(0)->type.shape;
    const int64_t axis = b.forward()->attributes.Int("axis", -1);
    const auto normalized = absl::MakeSpan(shape).subspan(axis < 0 ? axis + shape.size() : axis);
    Value* scale = b.input(1);
    if (absl::Span<const int64_t>(scale->type.shape) != normalized)
      scale = b.Emit("Expand", {scale, b.Ints(normalized)});
    gradients[0] = b.Emit("LayerNormalizationInputGrad", {dy[0], b.input(0), scale, mean, inv_std_dev},
                          Axis(b), kPipecDomain);
  }
  const bool bias = wanted.size() > 2 && wanted[2];
  if (wanted[1]) {
    const Gradients both = b.EmitAll("LayerNormalizationWeightGrad", {dy[0], b.input(0), mean, inv_std_dev},
                                     Axis(b), kPipecDomain, bias ? 2 : 1);
    gradients[1] = b.SumToShape(both[0], b.input(1)->type.shape);
    if (bias) gradients[2] = b.SumToShape(both[1], b.input(2)->type.shape);
  } else if (bias) {
    gradients[2] = b.SumToShape(dy[0], b.input(2)->type.shape);
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"Softmax", "", Softmax}, {"LogSoftmax", "", LogSoftmax}, {"LayerNormalization", "", LayerNormalization}};

}  // namespace

absl::Span<const GradientRuleEntry> NormalizationRules() { return kRules; }

}  // namespace pipec
