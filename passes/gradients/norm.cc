// p-norms, along an axis or over windows, and LRN. Where a norm is 0 its gradient is 0, as torch.norm's.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// sign(x) * abs(x)^(p - 1): the slope of abs(x)^p / p.
Value* Slope(GradientBuilder& b, Value* x, int64_t p) {
  if (p == 2) return x;
  Value* sign = b.Emit("Sign", {x});
  if (p == 1) return sign;
  Value* power = b.Emit("Pow", {b.Emit("Abs", {x}), b.Scalar(x->type.dtype, static_cast<double>(p - 1))});
  return b.Emit("Mul", {sign, power});
}

// value / norm^power, 0 where the norm is 0.
Value* OverNorm(GradientBuilder& b, Value* value, Value* norm, int64_t power) {
  if (power == 0 || !norm) return value;
  const DType dtype = norm->type.dtype;
  Value* divisor = power == 1 ? norm : b.Emit("Pow", {norm, b.Scalar(dtype, static_cast<double>(power))});
  Value* zero = b.Scalar(dtype, 0);
  return b.Emit("Where", {b.Emit("Equal", {norm, zero}), zero, b.Emit("Div", {value, divisor})});
}

// y = x / n: (dy - slope * sum(dy * y) / n^(p - 1)) / n.
Gradients LpNormalization(GradientBuilder& b, Span dy, const Wanted&) {
  const int64_t p = b.forward()->attributes.Int("p", 2);
  Value* axis = b.Ints({b.forward()->attributes.Int("axis", -1)});
  Value* norm = p == 2 ? b.Emit("Sqrt", {b.Emit("ReduceSumSquare", {b.input(0), axis})})
                       : b.Emit("ReduceSum", {b.Emit("Abs", {b.input(0)}), axis});
  Value* along = b.Emit("ReduceSum", {b.Emit("Mul", {dy[0], b.output(0)}), axis});
  Value* direction = p == 2 ? b.output(0) : b.Emit("Sign", {b.input(0)});
  return {OverNorm(b, b.Emit("Sub", {dy[0], b.Emit("Mul", {direction, along})}), norm, 1)};
}

Gradients GlobalLpPool(GradientBuilder& b, Span dy, const Wanted&) {
  const int64_t p = b.forward()->attributes.Int("p", 2);
  return {b.Emit("Mul", {Slope(b, b.input(0), p), OverNorm(b, dy[0], b.output(0), p - 1)})};
}

// The windows add up as AveragePool's do, once the shares are multiplied by what they are divided by: the taps
// that lie inside, which the 1-norm of ones counts.
Gradients LpPool(GradientBuilder& b, Span dy, const Wanted&) {
  const TensorType& x = b.input(0)->type;
  const int64_t p = b.forward()->attributes.Int("p", 2);
  Attributes count = b.forward()->attributes, spread = b.forward()->attributes;
  count.Set("p", int64_t{1});
  Value* ones = b.Emit("Expand", {b.Scalar(x.dtype, 1), b.Ints(x.shape)});
  Value* counts = b.Emit("LpPool", {ones}, std::move(count));
  spread.Set("shape", std::vector<int64_t>(x.shape.begin(), x.shape.end()));
  Value* share = b.Emit("Mul", {OverNorm(b, dy[0], b.output(0), p - 1), counts});
  Value* sum = b.Emit("AveragePoolGrad", {share}, std::move(spread), kPipecDomain);
  return {b.Emit("Mul", {Slope(b, b.input(0), p), sum})};
}

// The average of x over the window of `size` channels, `before` of them in front; what is outside counts as 0.
Value* OverChannels(GradientBuilder& b, Value* x, int64_t size, int64_t before) {
  if (!x) return nullptr;
  const Shape shape = x->type.shape;
  const int64_t places = NumElements(absl::MakeSpan(shape).subspan(2));
  Attributes attributes;
  attributes.Set("kernel_shape", std::vector<int64_t>{size, 1});
  attributes.Set("pads", std::vector<int64_t>{before, 0, size - 1 - before, 0});
  attributes.Set("count_include_pad", int64_t{1});
  Value* pooled =
      b.Emit("AveragePool", {b.Reshape(x, {shape[0], 1, shape[1], places})}, std::move(attributes));
  return b.Reshape(pooled, shape);
}

// y = x s^-beta with s = bias + alpha * average of x^2 over channels:
// dy s^-beta - 2 alpha beta x * (average of dy y / s over the channels whose window has this one).
Gradients Lrn(GradientBuilder& b, Span dy, const Wanted&) {
  const Attributes& a = b.forward()->attributes;
  const DType dtype = dy[0]->type.dtype;
  const int64_t size = a.Int("size"), before = (size - 1) / 2;
  const double alpha = a.Float("alpha", 1e-4f), beta = a.Float("beta", 0.75f), bias = a.Float("bias", 1);
  Value* average = OverChannels(b, b.Emit("Mul", {b.input(0), b.input(0)}), size, before);
  Value* s = b.Emit("Add", {b.Emit("Mul", {average, b.Scalar(dtype, alpha)}), b.Scalar(dtype, bias)});
  Value* own = b.Emit("Div", {dy[0], b.Emit("Pow", {s, b.Scalar(dtype, beta)})});
  Value* met =
      OverChannels(b, b.Emit("Div", {b.Emit("Mul", {dy[0], b.output(0)}), s}), size, size - 1 - before);
  Value* others = b.Emit("Mul", {b.input(0), b.Emit("Mul", {met, b.Scalar(dtype, 2 * alpha * beta)})});
  return {b.Emit("Sub", {own, others})};
}

const GradientRuleEntry kRules[] = {{"LpNormalization", "", LpNormalization},
                                    {"GlobalLpPool", "", GlobalLpPool},
                                    {"LpPool", "", LpPool},
                                    {"LRN", "", Lrn}};

}  // namespace

absl::Span<const GradientRuleEntry> NormRules() { return kRules; }

}  // namespace pipec
