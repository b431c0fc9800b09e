// Matrix products.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr absl::string_view kGeluTanh = "GeluTanh", kGeluTanhGrad = "GeluTanhGrad";

// The shape of an operand after its transposition, if it has the rank for one.
Shape Transposed(Shape shape, bool transpose) {
  if (transpose && shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

// FLOP of an element's activation: Gelu's and GeluGrad's (elementwise.cc).
double ActivationFlops(const Node& node) {
  const std::string activation = node.attributes.String("activation");
  return activation == kGeluTanh ? 8 : activation == kGeluTanhGrad ? 12 : 0;
}

NodeCost MatMulCost(const Node& node) {
  const Shape a = Transposed(node.input(0)->type.shape, node.attributes.Int("trans_a") != 0);
  const double out = Elements(node.output(0));
  return {out * (2.0 * a.back() + (node.input(2) ? 1 : 0) + ActivationFlops(node)), BytesOf(node)};
}

NodeCost MatMulWeightGradCost(const Node& node) {
  const double dy = Elements(node.input(0));
  return {2.0 * dy * node.input(1)->type.shape[1] + dy, BytesOf(node)};
}

NodeCost GemmCost(const Node& node) {
  const Shape& a = node.input(0)->type.shape;
  const double inner = node.attributes.Int("transA") ? a[0] : a[1];
  const double out = Elements(node.output(0));
  return {2.0 * out * inner + (node.input(2) ? out : 0), BytesOf(node)};
}

// One operand's share of the rule: the axis of the result that its batch axis becomes, -1 if it has none, -2
// if it is the axis that is summed over. `row`: whether it is the left operand.
int ProductAxis(const Value* operand, bool transpose, bool row, int out_lead, int out_rank) {
  int axis = operand->batch_axis;
  const int rank = operand->type.shape.size();
  if (axis < 0) return -1;
  if (rank == 1) return -2;
  const int lead = rank - 2;
  if (axis < lead) return out_lead - lead + axis;
  bool first = (axis == lead) != transpose;  // after the transposition
  if (row) return first ? out_lead : -2;
  return first ? -2 : out_rank - 1;
}

int MatMulBatchAxis(const Node& node) {
  const bool own_bias = node.input(2) && node.input(2)->batch_axis >= 0;  // another bias a sample
  return own_bias ? -1 : ProductBatchAxis(node, 0, 1);
}

int GemmBatchAxis(const Node& node) {
  const Value *a = node.input(0), *b = node.input(1), *c = node.input(2), *y = node.output(0);
  int axis = -1;
  auto agree = [&axis](int other) {
    if (other == -1) return true;
    if (other == -2 || (axis >= 0 && axis != other)) return false;
    axis = other;
    return true;
  };
  if (!agree(ProductAxis(a, node.attributes.Int("transA") != 0, true, 0, 2)) ||
      !agree(ProductAxis(b, node.attributes.Int("transB") != 0, false, 0, 2))) {
    return -1;
  }
  if (c && c->batch_axis >= 0) {
    const int aligned = c->batch_axis + 2 - static_cast<int>(c->type.shape.size());
    if (y->type.shape[aligned] != c->type.shape[c->batch_axis] || !agree(aligned)) return -1;
  }
  return axis;
}

// The element type of what operands 0 and 1 are multiplied to.
absl::StatusOr<DType> ResultOf(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const DType dtype = TypeOf(spec, 0).dtype;
  if (TypeOf(spec, 1).dtype != dtype)
    return BadOperands(spec, "both operands must have the same element type");
  const DType result = static_cast<DType>(spec.attributes.Int("to", static_cast<int64_t>(dtype)));
  if (result != dtype && (result != DType::kFloat32 || !IsSmallFloat(dtype))) {
    return BadOperands(spec, absl::StrCat("the result of ", Name(dtype), " cannot be ", Name(result)));
  }
  return result;
}

// Y's activation: what it is, and where GeluGrad takes the slope, operand 3.
absl::Status CheckActivation(const NodeSpec& spec, const TensorType& y) {
  const std::string activation = spec.attributes.String("activation");
  if (!activation.empty() && activation != kGeluTanh && activation != kGeluTanhGrad) {
    return BadOperands(spec, absl::StrCat("activation is '", activation, "', wanted '", kGeluTanh, "' or '",
                                          kGeluTanhGrad, "'"));
  }
  if (activation != kGeluTanhGrad) {
    return Present(spec, 3)
               ? BadOperands(spec, absl::StrCat("operand 3 is for activation '", kGeluTanhGrad, "'"))
               : absl::OkStatus();
  }
  if (Present(spec, 2))
    return BadOperands(spec, absl::StrCat("activation '", kGeluTanhGrad, "' takes no bias"));
  if (!Present(spec, 3) || TypeOf(spec, 3) != y)
    return BadOperands(spec, absl::StrCat("operand 3 must be ", ToString(y)));
  return absl::OkStatus();
}

// (A, B, bias?, X?) -> (Y) with leading axes broadcast as in ONNX MatMul.
InferredTypes InferFusedMatMul(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 4));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  ASSIGN_OR_RETURN(const DType result, ResultOf(spec));
  Shape a = Transposed(TypeOf(spec, 0).shape, spec.attributes.Int("trans_a") != 0);
  Shape b = Transposed(TypeOf(spec, 1).shape, spec.attributes.Int("trans_b") != 0);
  if (a.empty() || b.empty()) return BadOperands(spec, "an operand is a scalar, wanted rank 1 or more");

  const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), 1);
  if (vector_b) b.push_back(1);
  const int64_t inner_a = a[a.size() - 1], inner_b = b[b.size() - 2];
  if (inner_a != inner_b) {
    return BadOperands(spec, absl::StrCat("the axes to sum over differ: ", inner_a, " and ", inner_b));
  }
  Shape out;
  const int lead_a = a.size() - 2, lead_b = b.size() - 2, lead = std::max(lead_a, lead_b);
  for (int i = 0; i < lead; ++i) {
    const int64_t dim_a = i < lead - lead_a ? 1 : a[i - (lead - lead_a)];
    const int64_t dim_b = i < lead - lead_b ? 1 : b[i - (lead - lead_b)];
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1) {
      return BadOperands(spec, absl::StrCat("leading axes do not broadcast: ", dim_a, " and ", dim_b));
    }
    out.push_back(dim_a == 1 ? dim_b : dim_a);
  }
  if (!vector_a) out.push_back(a[a.size() - 2]);
  if (!vector_b) out.push_back(b[b.size() - 1]);
  if (Present(spec, 2)) {
    if (vector_b) return BadOperands(spec, "a bias needs columns, and B is a vector");
    if (const TensorType bias{result, {out.back()}}; TypeOf(spec, 2) != bias)
      return BadOperands(spec, absl::StrCat("the bias must be ", ToString(bias)));
  }
  RETURN_IF_ERROR(CheckActivation(spec, {result, out}));
  return std::vector<TensorType>{{result, out}};
}

// (dY, X) -> (dW, dBias)
InferredTypes InferMatMulWeightGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 2, 2));
  ASSIGN_OR_RETURN(const DType result, ResultOf(spec));
  const Shape &dy = TypeOf(spec, 0).shape, &x = TypeOf(spec, 1).shape;
  if (dy.size() != 2 || x.size() != 2 || dy[0] != x[0])
    return BadOperands(spec, "dY and X must be matrices of as many rows");
  const bool transposed = spec.attributes.Int("trans_b") != 0;
  return std::vector<TensorType>{{result, transposed ? Shape{dy[1], x[1]} : Shape{x[1], dy[1]}},
                                 {result, {dy[1]}}};
}

const OpInfo kRows[] = {
    {"MatMul", "", MatMulCost, MatMulBatchAxis},
    {"Gemm", "", GemmCost, GemmBatchAxis},
    {"FusedMatMul", kPipecDomain, MatMulCost, MatMulBatchAxis, Alias::kNone, 0, InferFusedMatMul},
    {"MatMulWeightGrad", kPipecDomain, MatMulWeightGradCost, NoBatchAxis, Alias::kNone, 0,
     InferMatMulWeightGrad},
};

}  // namespace

int ProductBatchAxis(const Node& node, int left, int right) {
  const Value *a = node.input(left), *b = node.input(right), *y = node.output(0);
  const int rank_a = a->type.shape.size(), rank_b = b->type.shape.size(), rank = y->type.shape.size();
  const int lead = std::max({rank_a - 2, rank_b - 2, 0});
  const int from_a = ProductAxis(a, node.attributes.Int("trans_a") != 0, true, lead, rank);
  const int from_b = ProductAxis(b, node.attributes.Int("trans_b") != 0, false, lead, rank);
  if (from_a == -2 || from_b == -2) return -1;
  if (from_a >= 0 && from_b >= 0 && from_a != from_b) return -1;
  const int axis = std::max(from_a, from_b);
  if (axis < 0) return -1;
  const Value* owner = from_a >= 0 ? a : b;
  return y->type.shape[axis] == owner->type.shape[owner->batch_axis] ? axis : -1;
}

absl::Span<const OpInfo> MatMulOps() { return kRows; }

}  // namespace pipec
