// Matrix products. With Y = A B + bias: dA = dY B^T, dB = A^T dY, summed over broadcast batch axes (the ONNX op
// MatMul, NumPy's rules for operands with one axis), dbias = dY summed over rows. Of a weight matrix and a bias
// both gradients are one node, as the product reads dY anyhow.
#include <string>

#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

Value* Product(GradientBuilder& b, Value* left, bool transpose_left, Value* right, bool transpose_right,
               float alpha) {
  Attributes attributes;
  attributes.Set("trans_a", int64_t{transpose_left});
  attributes.Set("trans_b", int64_t{transpose_right});
  attributes.Set("alpha", alpha);
  return b.Emit("FusedMatMul", {left, right}, std::move(attributes), kPipecDomain);
}

// All axes but the last as one.
Value* AsMatrix(GradientBuilder& b, Value* value) {
  const int64_t columns = value->type.shape.back();
  return b.Reshape(
      value, {NumElements(absl::MakeSpan(value->type.shape).first(value->type.shape.size() - 1)), columns});
}

// {dW, dBias} of matrices, in float32 where dY is of a 16-bit type, and then rounded.
std::vector<Value*> WeightAndBiasGradient(GradientBuilder& b, Value* dy, Value* x, bool transposed) {
  const DType dtype = dy->type.dtype;
  Attributes attributes;
  attributes.Set("trans_b", int64_t{transposed});
  if (IsSmallFloat(dtype)) attributes.Set("to", static_cast<int64_t>(DType::kFloat32));
  std::vector<Value*> both = b.EmitAll("MatMulWeightGrad", {dy, x}, std::move(attributes), kPipecDomain, 2);
  if (!IsSmallFloat(dtype)) return both;
  for (Value*& gradient : both) {
    Attributes to;
    to.Set("to", static_cast<int64_t>(dtype));
    gradient = b.Emit("Cast", {gradient}, std::move(to));
  }
  return both;
}

// Y = alpha * op(A) op(B) + bias, op transposing the last two axes of an operand that has them.
std::vector<Value*> ProductGradient(GradientBuilder& b, Value* dy, const std::vector<bool>& wanted, bool ta,
                                    bool tb, float alpha) {
  Value* x = b.input(0);
  Value* w = b.input(1);
  const Shape x_shape = x->type.shape, w_shape = w->type.shape;
  // Operands with one axis become a row or a column; dY gets the axis that they lost.
  Shape y_shape = dy->type.shape;
  if (x_shape.size() == 1) {
    y_shape.insert(y_shape.end() - (w_shape.size() == 1 ? 0 : 1), 1);
    x = b.Reshape(x, {1, x_shape[0]});
    ta = false;
  }
  if (w_shape.size() == 1) {
    y_shape.push_back(1);
    w = b.Reshape(w, {w_shape[0], 1});
    tb = false;
  }
  dy = b.Reshape(dy, y_shape);
  if (!b.status().ok()) return {};

  std::vector<Value*> gradients(wanted.size());
  const bool wants_bias = wanted.size() > 2 && wanted[2];
  if (wanted[0]) {
    Value* dx = ta ? Product(b, w, tb, dy, true, alpha) : Product(b, dy, false, w, !tb, alpha);
    if (dx) gradients[0] = b.Reshape(b.SumToShape(dx, x->type.shape), x_shape);
  }
  if (wanted[1]) {
    if (!ta && w->type.shape.size() == 2) {
      // One product over all rows of the batch instead of one each and a sum.
      x = AsMatrix(b, x);
      dy = AsMatrix(b, dy);
      if (!b.status().ok()) return {};
      if (wants_bias && alpha == 1 && b.input(2)->type.shape == Shape{dy->type.shape[1]}) {
        const std::vector<Value*> both = WeightAndBiasGradient(b, dy, x, tb);
        gradients[1] = both[0], gradients[2] = both[1];
        return gradients;
      }
    }
    Value* dw = tb ? Product(b, dy, true, x, ta, alpha) : Product(b, x, !ta, dy, false, alpha);
    if (dw) gradients[1] = b.Reshape(b.SumToShape(dw, w->type.shape), w_shape);
  }
  if (wants_bias) gradients[2] = b.SumToShape(dy, b.input(2)->type.shape);
  return gradients;
}

std::vector<Value*> MatMul(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  return ProductGradient(b, dy[0], wanted, false, false, 1);
}

// What reaches the product: Gelu's slope is taken where it was, which is computed again.
Value* GeluGradient(GradientBuilder& b, Value* dy) {
  const Node& forward = *b.forward();
  Attributes again = forward.attributes, form;
  again.Erase("activation");
  form.Set("approximate", std::string("tanh"));
  Value* x = b.Emit("FusedMatMul", {forward.inputs().begin(), forward.inputs().end()}, std::move(again),
                    kPipecDomain);
  return b.Emit("GeluGrad", {dy, x}, std::move(form), kPipecDomain);
}

std::vector<Value*> FusedMatMul(GradientBuilder& b, absl::Span<Value* const> dy,
                                const std::vector<bool>& wanted) {
  const Attributes& a = b.forward()->attributes;
  const std::string activation = a.String("activation");
  Value* product = dy[0];
  if (activation == "GeluTanh") {
    product = GeluGradient(b, dy[0]);
  } else if (!activation.empty()) {
    b.Fail(absl::UnimplementedError(
        absl::StrCat("node ", b.forward()->name(), " has activation '", activation, "', which has no gradient")));
  }
  if (!b.status().ok()) return {};
  return ProductGradient(b, product, wanted, a.Int("trans_a"), a.Int("trans_b"), a.Float("alpha", 1));
}

// Y = alpha * op(A) op(B) + beta * C.
std::vector<Value*> Gemm(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  const Attributes& a = b.forward()->attributes;
  std::vector<Value*> gradients =
      ProductGradient(b, dy[0], wanted, a.Int("transA"), a.Int("transB"), a.Float("alpha", 1));
  if (const float beta = a.Float("beta", 1);
      b.status().ok() && gradients.size() > 2 && gradients[2] && beta != 1) {
    gradients[2] = b.Emit("Mul", {gradients[2], b.Scalar(dy[0]->type.dtype, beta)});
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"MatMul", "", MatMul}, {"Gemm", "", Gemm}, {"FusedMatMul", kPipecDomain, FusedMatMul}};

}  // namespace

absl::Span<const GradientRuleEntry> MatMulRules() { return kRules; }

}  // namespace pipec
