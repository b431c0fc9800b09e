// Attention without the matrix of its weights, and its gradient.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Weights a forward pass computes: T x S a head, of a causal one those that do not vanish.
double Weights(const Node& node, int query) {
  const Shape& q = node.input(query)->type.shape;
  const double rows = q[q.size() - 2];
  const double columns = node.input(query + 1)->type.shape[q.size() - 2];
  const double heads = Elements(node.input(query)) / std::max(1.0, rows * static_cast<double>(q.back()));
  return heads * rows * (node.attributes.Int("causal") != 0 ? (columns + 1) / 2 : columns);
}

// Q K^T and the product with V: 2 operations for an element of Q's, of V's rows; scale, mask and softmax: 8.
NodeCost ForwardCost(const Node& node) {
  const double depth = node.input(0)->type.shape.back(), width = node.input(2)->type.shape.back();
  return {Weights(node, 0) * (2 * (depth + width) + 8), BytesOf(node)};
}

// The weights again, then what reaches V and them (both as wide as V), Q and K.
NodeCost BackwardCost(const Node& node) {
  const double depth = node.input(1)->type.shape.back(), width = node.input(3)->type.shape.back();
  return {Weights(node, 1) * (2 * (3 * depth + 2 * width) + 8), BytesOf(node)};
}

// Q, K, V from operand `first` on have the axis in front of their last two; a mask has it there too, or is the
// same for all samples.
int AttentionBatchAxis(const Node& node, int first, int mask) {
  const int rank = node.input(first)->type.shape.size();
  int axis = -1;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    const Value* in = node.input(k);
    if (!in || in->batch_axis < 0) continue;
    const bool is_mask = static_cast<int>(k) == mask;
    const int own = in->batch_axis + (is_mask ? rank - static_cast<int>(in->type.shape.size()) : 0);
    if (own >= rank - 2 || (axis >= 0 && own != axis)) return -1;
    if (in->type.shape[in->batch_axis] != node.input(first)->type.shape[own]) return -1;
    axis = own;
  }
  return axis;
}

int ForwardBatchAxis(const Node& node) { return AttentionBatchAxis(node, 0, 3); }
int BackwardBatchAxis(const Node& node) { return AttentionBatchAxis(node, 1, 6); }

// Checks Q, K, V from operand `first` on and the mask; the types of O and log_sum_exp.
InferredTypes CheckAttention(const NodeSpec& spec, int first, int mask) {
  RETURN_IF_ERROR(CheckFloat(spec, first));
  const TensorType &q = TypeOf(spec, first), &k = TypeOf(spec, first + 1), &v = TypeOf(spec, first + 2);
  const size_t rank = q.shape.size();
  if (k.dtype != q.dtype || v.dtype != q.dtype)
    return BadOperands(spec, "Q, K and V must have one element type");
  if (rank < 2 || k.shape.size() != rank || v.shape.size() != rank)
    return BadOperands(spec, "Q, K and V must have one rank, 2 or more");
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (q.shape[i] != k.shape[i] || q.shape[i] != v.shape[i])
      return BadOperands(spec, absl::StrCat("Q, K and V differ in axis ", i));
  }
  if (k.shape[rank - 1] != q.shape[rank - 1]) return BadOperands(spec, "Q and K differ in their last axis");
  if (k.shape[rank - 2] != v.shape[rank - 2])
    return BadOperands(spec, "K and V differ in the axis before the last");
  if (spec.attributes.Int("causal") != 0 && q.shape[rank - 2] != k.shape[rank - 2])
    return BadOperands(spec, "causal attention needs as many queries as keys");
  const DType sums = IsSmallFloat(q.dtype) ? DType::kFloat32 : q.dtype;
  if (Present(spec, mask)) {
    const TensorType& type = TypeOf(spec, mask);
    Shape wanted = q.shape;
    wanted[rank - 1] = k.shape[rank - 2];
    bool fits = type.shape.size() <= rank;
    for (size_t i = 0; fits && i < type.shape.size(); ++i) {
      const int64_t dim = type.shape[type.shape.size() - 1 - i];
      fits = dim == 1 || dim == wanted[rank - 1 - i];
    }
    if (!fits || (type.dtype != DType::kBool && type.dtype != sums)) {
      return BadOperands(spec, absl::StrCat("the mask must be bool or ", Name(sums), " and broadcast to ",
                                            ToString(wanted)));
    }
  }
  TensorType o = q, log_sum_exp{sums, q.shape};
  o.shape.back() = v.shape.back();
  log_sum_exp.shape.pop_back();
  return std::vector<TensorType>{o, log_sum_exp};
}

InferredTypes InferAttention(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 3, 4));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 2));
  ASSIGN_OR_RETURN(std::vector<TensorType> types, CheckAttention(spec, 0, 3));
  types.resize(spec.outputs.size());
  return types;
}

InferredTypes InferAttentionGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 6, 7));
  RETURN_IF_ERROR(CheckOutputs(spec, 3, 3));
  ASSIGN_OR_RETURN(const std::vector<TensorType> forward, CheckAttention(spec, 1, 6));
  for (int k : {0, 4}) {
    if (TypeOf(spec, k) != forward[0])
      return BadOperands(spec, absl::StrCat("operand ", k, " must be ", ToString(forward[0])));
  }
  if (TypeOf(spec, 5) != forward[1])
    return BadOperands(spec, absl::StrCat("operand 5 must be ", ToString(forward[1])));
  return std::vector<TensorType>{TypeOf(spec, 1), TypeOf(spec, 2), TypeOf(spec, 3)};
}

const OpInfo kRows[] = {
    {"FusedAttention", kPipecDomain, ForwardCost, ForwardBatchAxis, Alias::kNone, 0, InferAttention},
    {"FusedAttentionGrad", kPipecDomain, BackwardCost, BackwardBatchAxis, Alias::kNone, 0,
     InferAttentionGrad},
};

}  // namespace

absl::Span<const OpInfo> FusedAttentionOps() { return kRows; }

}  // namespace pipec
