// Convolutions and pooling, with their gradients: windows over the spatial axes of (N, C, D1, ..., Dn).
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Of a gradient: every batched operand is (N, ...), as the result.
int GradientBatchAxis(const Node& node) { return LeadingBatchAxis(node, {0, 1}); }

double TapsOf(const Value* w) {
  double taps = 1;
  for (size_t i = 2; i < w->type.shape.size(); ++i) taps *= static_cast<double>(w->type.shape[i]);
  return taps;
}

// Operand 1 is W: (channels of Y, channels of X in a group, taps).
NodeCost ConvCost(const Node& node) {
  const Value* w = node.input(1);
  const double each = static_cast<double>(w->type.shape[1]) * TapsOf(w);
  return {2.0 * static_cast<double>(Elements(node.output(0))) * each, BytesOf(node)};
}

// Operand 1 is W: (channels of X, channels of Y in a group, taps).
NodeCost ConvTransposeCost(const Node& node) {
  const Value* w = node.input(1);
  const double each = static_cast<double>(w->type.shape[1]) * TapsOf(w);
  return {2.0 * static_cast<double>(Elements(node.input(0))) * each, BytesOf(node)};
}

NodeCost PoolCost(const Node& node) {
  double taps = 1;
  for (int64_t k : node.attributes.Ints("kernel_shape")) taps *= static_cast<double>(k);
  return {static_cast<double>(Elements(node.output(0))) * taps, BytesOf(node)};
}

// A convolution's gradients take as much as the convolution: `w` is W, operand 1 or the result, and `windows`
// has an element for each channel and window.
NodeCost ConvGradCost(const Node& node, const Value* w, const Value* windows) {
  const double each = static_cast<double>(w->type.shape[1]) * TapsOf(w);
  return {2.0 * static_cast<double>(Elements(windows)) * each, BytesOf(node)};
}

NodeCost ConvInputGradCost(const Node& node) { return ConvGradCost(node, node.input(1), node.input(0)); }
NodeCost ConvWeightGradCost(const Node& node) { return ConvGradCost(node, node.output(0), node.input(0)); }
NodeCost ConvTransposeInputGradCost(const Node& node) {
  return ConvGradCost(node, node.input(1), node.output(0));
}
NodeCost ConvTransposeWeightGradCost(const Node& node) {
  return ConvGradCost(node, node.output(0), node.input(1));
}

NodeCost AveragePoolGradCost(const Node& node) {
  double taps = 1;
  for (int64_t k : node.attributes.Ints("kernel_shape")) taps *= static_cast<double>(k);
  return {static_cast<double>(Elements(node.input(0))) * taps, BytesOf(node)};
}

// The forward op's three tensors, one of them known by the attribute shape only. `windows` is dY's place in a
// convolution, X's in a transposed one; W is (channels of windows, channels of places in a group, taps).
absl::Status CheckConvolution(const NodeSpec& spec, const Shape& places, const Shape& w,
                              const Shape& windows) {
  const bool fits = w.size() >= 3 && places.size() == w.size() && windows.size() == w.size() &&
                    places[0] == windows[0] && w[0] == windows[1] &&
                    w[1] * spec.attributes.Int("group", 1) == places[1];
  if (fits) return absl::OkStatus();
  return BadOperands(spec,
                     absl::StrCat("they and the attributes shape and group do not fit together: X, W and Y ",
                                  "would be ", ToString(places), ", ", ToString(w), ", ", ToString(windows)));
}

template <bool kTransposed, bool kOfWeight>
InferredTypes InferConvGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType &dy = TypeOf(spec, 0), &other = TypeOf(spec, 1);
  if (other.dtype != dy.dtype) return BadOperands(spec, "both must be of the same type");
  ASSIGN_OR_RETURN(Shape shape, ShapeAttribute(spec));
  const Shape &w = kOfWeight ? shape : other.shape, &x = kOfWeight ? other.shape : shape;
  RETURN_IF_ERROR(kTransposed ? CheckConvolution(spec, dy.shape, w, x)
                              : CheckConvolution(spec, x, w, dy.shape));
  return std::vector<TensorType>{{dy.dtype, std::move(shape)}};
}

// (dY, Indices?): the result has dY's planes.
template <int kOperands>
InferredTypes InferPoolGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, kOperands, kOperands));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType& dy = TypeOf(spec, 0);
  ASSIGN_OR_RETURN(Shape shape, ShapeAttribute(spec));
  if (shape.size() < 3 || shape.size() != dy.shape.size() || shape[0] != dy.shape[0] ||
      shape[1] != dy.shape[1]) {
    return BadOperands(
        spec, absl::StrCat("dY must have the rank, 3 or more, and the planes of the attribute ", "shape, ",
                           ToString(shape)));
  }
  if (const TensorType indices{DType::kInt64, dy.shape}; kOperands > 1 && TypeOf(spec, 1) != indices)
    return BadOperands(spec, absl::StrCat("indices must be ", ToString(indices)));
  return std::vector<TensorType>{{dy.dtype, std::move(shape)}};
}

const OpInfo kRows[] = {
    {"Conv", "", ConvCost},
    {"ConvTranspose", "", ConvTransposeCost},
    {"MaxPool", "", PoolCost},
    {"AveragePool", "", PoolCost},
    {"LpPool", "", PoolCost},
    {"GlobalMaxPool", "", PerInputElement<1>},
    {"GlobalAveragePool", "", PerInputElement<1>},
    {"GlobalLpPool", "", PerInputElement<2>},
    {"ConvInputGrad", kPipecDomain, ConvInputGradCost, GradientBatchAxis, Alias::kNone, 0,
     InferConvGrad<false, false>},
    {"ConvWeightGrad", kPipecDomain, ConvWeightGradCost, NoBatchAxis, Alias::kNone, 0,
     InferConvGrad<false, true>},
    {"ConvTransposeInputGrad", kPipecDomain, ConvTransposeInputGradCost, GradientBatchAxis, Alias::kNone, 0,
     InferConvGrad<true, false>},
    {"ConvTransposeWeightGrad", kPipecDomain, ConvTransposeWeightGradCost, NoBatchAxis, Alias::kNone, 0,
     InferConvGrad<true, true>},
    {"MaxPoolGrad", kPipecDomain, PerInputElement<1>, GradientBatchAxis, Alias::kNone, 0, InferPoolGrad<2>},
    {"AveragePoolGrad", kPipecDomain, AveragePoolGradCost, GradientBatchAxis, Alias::kNone, 0,
     InferPoolGrad<1>},
};

}  // namespace

absl::Span<const OpInfo> WindowOps() { return kRows; }

}  // namespace pipec
