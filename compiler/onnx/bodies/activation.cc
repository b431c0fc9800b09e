// Matrix products and the gradients of the activations.
#include <cmath>
#include <numbers>
#include <numeric>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;

// Phi(x) + x phi(x); for `tanh` the derivative of 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Name GeluSlope(Body& b, DType dtype, const Name& x, bool tanh) {
  const Name half = b.Scalar(dtype, 0.5), one = b.Scalar(dtype, 1), square = b.Mul(x, x);
  if (tanh) {
    const double outer = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
    const Name inside =
        b.Mul(b.Mul(x, b.Scalar(dtype, outer)), b.Add(one, b.Mul(b.Scalar(dtype, cubic), square)));
    const Name t = b.Op("Tanh", {inside});
    const Name slope = b.Mul(b.Scalar(dtype, outer), b.Add(one, b.Mul(b.Scalar(dtype, 3 * cubic), square)));
    const Name bent = b.Mul(b.Mul(x, b.Sub(one, b.Mul(t, t))), slope);
    return b.Mul(half, b.Add(b.Add(one, t), bent));
  }
  const Name erf = b.Op("Erf", {b.Mul(x, b.Scalar(dtype, std::sqrt(0.5)))});
  const Name density = b.Mul(b.Op("Exp", {b.Mul(square, b.Scalar(dtype, -0.5))}),
                             b.Scalar(dtype, 1 / std::sqrt(2 * std::numbers::pi)));
  return b.Add(b.Mul(half, b.Add(one, erf)), b.Mul(x, density));
}

void FusedMatMul(Body& b) {
  const DType dtype = static_cast<DType>(b.attributes().Int("to", static_cast<int64_t>(b.type(0).dtype)));
  const auto operand = [&](int i, absl::string_view attribute) {
    const Name x = dtype == b.type(i).dtype ? b.in(i) : b.Cast(b.in(i), dtype);
    if (b.attributes().Int(attribute) == 0 || b.rank(i) < 2) return x;
    std::vector<int64_t> perm(b.rank(i));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 2], perm.back());
    return b.Transpose(x, std::move(perm));
  };
  const Name left = operand(0, "trans_a"), right = operand(1, "trans_b");
  const Name product = b.Op("MatMul", {left, right});
  const float alpha = b.attributes().Float("alpha", 1);
  const Name scaled = alpha == 1 ? product : b.Mul(product, b.Scalar(dtype, alpha));
  const Name sum = b.has(2) ? b.Add(scaled, b.in(2)) : scaled;
  const std::string activation = b.attributes().String("activation");
  b.Result(0, activation == "GeluTanh"       ? b.Op("Gelu", {sum}, {{"approximate", std::string("tanh")}})
              : activation == "GeluTanhGrad" ? b.Mul(sum, GeluSlope(b, dtype, b.in(3), true))
                                             : sum);
}

// (dY, X) -> (dW, dBias)
void MatMulWeightGrad(Body& b) {
  const DType dtype = static_cast<DType>(b.attributes().Int("to", static_cast<int64_t>(b.type(0).dtype)));
  const auto operand = [&](int i) { return dtype == b.type(i).dtype ? b.in(i) : b.Cast(b.in(i), dtype); };
  const Name dy = operand(0), x = operand(1);
  const bool transposed = b.attributes().Int("trans_b") != 0;
  b.Result(0, b.Op("MatMul", {b.Transpose(transposed ? dy : x, {1, 0}), transposed ? x : dy}));
  b.Result(1, b.Sum(dy, {0}, false));
}

void TanhGrad(Body& b) {
  const Name one = b.Scalar(b.type(0).dtype, 1);
  b.Result(0, b.Mul(b.in(0), b.Sub(one, b.Mul(b.in(1), b.in(1)))));
}

void SigmoidGrad(Body& b) {
  const Name one = b.Scalar(b.type(0).dtype, 1);
  b.Result(0, b.Mul(b.in(0), b.Mul(b.in(1), b.Sub(one, b.in(1)))));
}

void ReluGrad(Body& b) {
  const Name zero = b.Scalar(b.type(0).dtype, 0);
  b.Result(0, b.Where(b.Op("Greater", {b.in(1), zero}), b.in(0), zero));
}

void GeluGrad(Body& b) {
  const bool tanh = b.attributes().String("approximate", "none") == "tanh";
  b.Result(0, b.Mul(b.in(0), GeluSlope(b, b.type(0).dtype, b.in(1), tanh)));
}

const BodyRow kRows[] = {
    {"FusedMatMul", "A B bias X", "", FusedMatMul},
    {"MatMulWeightGrad", "dY X", "", MatMulWeightGrad},
    {"TanhGrad", "dY Y", "", TanhGrad},
    {"SigmoidGrad", "dY Y", "", SigmoidGrad},
    {"ReluGrad", "dY Y", "", ReluGrad},
    {"GeluGrad", "dY X", "", GeluGrad},
};

}  // namespace

absl::Span<const BodyRow> ActivationBodies() { return kRows; }

}  // namespace pipec
