// Attention and its gradient, with the matrix of weights that they are there to avoid.
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/onnx/bodies/families.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

using Name = Body::Name;

DType SumType(const Body& b, int q) {
  return IsSmallFloat(b.type(q).dtype) ? DType::kFloat32 : b.type(q).dtype;
}

Name Wide(Body& b, int operand, DType sums) {
  return b.type(operand).dtype == sums ? b.in(operand) : b.Cast(b.in(operand), sums);
}
Name Result(Body& b, Name value, int like, DType sums) {
  return b.type(like).dtype == sums ? value : b.Cast(std::move(value), b.type(like).dtype);
}

Name SwapLast(Body& b, Name x, int rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return b.Transpose(std::move(x), std::move(perm));
}

Name MatMul(Body& b, Name left, Name right) { return b.Op("MatMul", {std::move(left), std::move(right)}); }

// s, masked; Q is operand `q`, K the next one.
Name Scores(Body& b, int q, int mask, DType sums) {
  const Name product = MatMul(b, Wide(b, q, sums), SwapLast(b, Wide(b, q + 1, sums), b.rank(q)));
  Name s = b.Mul(product, b.Scalar(sums, b.attributes().Float("scale", 1)));
  const double hidden = -std::numeric_limits<double>::infinity();
  if (b.attributes().Int("causal") != 0) {
    const int64_t rows = b.shape(q)[b.rank(q) - 2];
    const Name seen = b.Op("Trilu", {b.Full(DType::kInt64, {rows, rows}, 1)}, {{"upper", int64_t{0}}});
    s = b.Where(b.Cast(seen, DType::kBool), s, b.Scalar(sums, hidden));
  }
  if (!b.has(mask)) return s;
  if (b.type(mask).dtype != DType::kBool) return b.Add(s, b.in(mask));
  return b.Where(b.in(mask), s, b.Scalar(sums, b.attributes().Float("fill", static_cast<float>(hidden))));
}

// 0 instead of NaN, if the node wants that.
Name Guarded(Body& b, Name weights, DType sums) {
  if (b.attributes().Int("zero_rows") == 0) return weights;
  return b.Where(b.Op("IsNaN", {weights}), b.Scalar(sums, 0), weights);
}

// (Q, K, V, mask?) -> (O, log_sum_exp?)
void FusedAttention(Body& b) {
  const DType sums = SumType(b, 0);
  const Name s = Scores(b, 0, 3, sums);
  const Name weights = Guarded(b, b.Op("Softmax", {s}, {{"axis", int64_t{-1}}}), sums);
  b.Result(0, Result(b, MatMul(b, weights, Wide(b, 2, sums)), 0, sums));
  if (b.node().output(1)) {
    b.Result(1, b.Op("ReduceLogSumExp", {s, b.Ints({int64_t{b.rank(0) - 1}})}, {{"keepdims", int64_t{0}}}));
  }
}

// (dO, Q, K, V, O, log_sum_exp, mask?) -> (dQ, dK, dV)
void FusedAttentionGrad(Body& b) {
  const DType sums = SumType(b, 1);
  const int rank = b.rank(1);
  const int64_t last = rank - 1;
  const auto column = [&](Name x) { return b.Op("Unsqueeze", {std::move(x), b.Ints({last})}); };
  const Name s = Scores(b, 1, 6, sums), d_o = Wide(b, 0, sums);
  const Name weights = Guarded(b, b.Op("Exp", {b.Sub(s, column(b.in(5)))}), sums);
  const Name d_weights = MatMul(b, d_o, SwapLast(b, Wide(b, 3, sums), rank));
  const Name along = b.Sum(b.Mul(d_o, Wide(b, 4, sums)), {last}, true);
  Name d_s = b.Mul(b.Mul(weights, b.Sub(d_weights, along)), b.Scalar(sums, b.attributes().Float("scale", 1)));
  if (b.has(6) && b.type(6).dtype == DType::kBool) d_s = b.Where(b.in(6), d_s, b.Scalar(sums, 0));
  b.Result(0, Result(b, MatMul(b, d_s, Wide(b, 2, sums)), 1, sums));
  b.Result(1, Result(b, MatMul(b, SwapLast(b, d_s, rank), Wide(b, 1, sums)), 2, sums));
  b.Result(2, Result(b, MatMul(b, SwapLast(b, weights, rank), d_o), 3, sums));
}

const BodyRow kRows[] = {
    {"FusedAttention", "Q K V mask", "", FusedAttention},
    {"FusedAttentionGrad", "dO Q K V O log_sum_exp mask", "", FusedAttentionGrad},
};

}  // namespace

absl::Span<const BodyRow> AttentionBodies() { return kRows; }

}  // namespace pipec
