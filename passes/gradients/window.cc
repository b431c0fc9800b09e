// Convolutions and pooling. Conv and ConvTranspose are linear in X and in W: helper ops (compiler/ops/README.md)
// that run the windows the other way. MaxPool and GlobalMaxPool hand the gradient to the first of equal maxima,
// as torch.max_pool2d and torch.adaptive_max_pool2d do.
#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

std::vector<int64_t> Ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

// The forward op's attributes, and the shape of the operand whose gradient is made.
Attributes WithShape(GradientBuilder& b, int operand) {
  Attributes attributes = b.forward()->attributes;
  attributes.Set("shape", Ints(b.input(operand)->type.shape));
  return attributes;
}

// Also ConvTranspose. The bias belongs to the channels, axis 1 of Y.
Gradients Conv(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const std::string& op = b.forward()->op();
  Gradients gradients(wanted.size());
  if (wanted[0]) {
    gradients[0] = b.Emit(absl::StrCat(op, "InputGrad"), {dy[0], b.input(1)}, WithShape(b, 0), kPipecDomain);
  }
  if (wanted[1]) {
    gradients[1] = b.Emit(absl::StrCat(op, "WeightGrad"), {dy[0], b.input(0)}, WithShape(b, 1), kPipecDomain);
  }
  if (wanted.size() > 2 && wanted[2]) {
    std::vector<int64_t> axes = {0};
    for (int i = 2; i < dy[0]->type.shape.size(); ++i) axes.push_back(i);
    Attributes attributes;
    attributes.Set("keepdims", int64_t{0});
    gradients[2] = b.Emit("ReduceSum", {dy[0], b.Ints(axes)}, std::move(attributes));
  }
  return gradients;
}

Gradients MaxPool(GradientBuilder& b, Span dy, const Wanted&) {
  Value* indices = b.RequireOutput(1);
  return {b.Emit("MaxPoolGrad", {dy[0], indices}, WithShape(b, 0), kPipecDomain)};
}

Gradients AveragePool(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("AveragePoolGrad", {dy[0]}, WithShape(b, 0), kPipecDomain)};
}

// The elements of X that one element of Y was made of.
int64_t Pooled(GradientBuilder& b) { return NumElements(absl::MakeSpan(b.input(0)->type.shape).subspan(2)); }

Gradients GlobalAveragePool(GradientBuilder& b, Span dy, const Wanted&) {
  Value* share = b.Emit("Mul", {dy[0], b.Scalar(dy[0]->type.dtype, 1.0 / Pooled(b))});
  return {b.Emit("Expand", {share, b.Ints(b.input(0)->type.shape)})};
}

// All places as one axis, of which one gets everything.
Gradients GlobalMaxPool(GradientBuilder& b, Span dy, const Wanted&) {
  const TensorType& x = b.input(0)->type;
  const Shape flat = {x.shape[0], x.shape[1], Pooled(b)}, one = {x.shape[0], x.shape[1], 1};
  Attributes last;
  last.Set("axis", int64_t{2});
  Value* place = b.Emit("ArgMax", {b.Reshape(b.input(0), flat)}, last);
  Value* dx = b.Emit("ScatterElements", {b.Zeros({x.dtype, flat}), place, b.Reshape(dy[0], one)}, last);
  return {b.Reshape(dx, x.shape)};
}

const GradientRuleEntry kRules[] = {
    {"Conv", "", Conv},
    {"ConvTranspose", "", Conv},
    {"MaxPool", "", MaxPool},
    {"AveragePool", "", AveragePool},
    {"GlobalAveragePool", "", GlobalAveragePool},
    {"GlobalMaxPool", "", GlobalMaxPool},
};

}  // namespace

absl::Span<const GradientRuleEntry> WindowRules() { return kRules; }

}  // namespace pipec
