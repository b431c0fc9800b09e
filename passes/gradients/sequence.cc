// Ops along an axis: running sums and products, padding, reversed sequences.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// An element goes into all later sums: the sums run the other way.
Gradients CumSum(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Attributes attributes = b.forward()->attributes;
  attributes.Set("reverse", int64_t{attributes.Int("reverse") == 0});
  Gradients gradients(wanted.size());
  gradients[0] = b.Emit("CumSum", {dy[0], b.input(1)}, std::move(attributes));
  return gradients;
}

// With e the product before x_k, and behind it the later results' share: dx_k = e_k * sum over i of dy_i *
// (product of the x_j between k and i). No division, so that zeros do no harm; n^2 elements for a line of n.
Gradients CumProd(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const TensorType& x = b.input(0)->type;
  const std::vector<int64_t> axis = b.ConstantInts(b.input(1));
  if (!b.status().ok()) return gradients;
  const int64_t rank = x.shape.size(), along = axis[0] < 0 ? axis[0] + rank : axis[0], n = x.shape[along];
  const int64_t exclusive = b.forward()->attributes.Int("exclusive"),
                reverse = b.forward()->attributes.Int("reverse");
  const auto product = [&](Value* operand, int64_t along_axis, int64_t without_own) {
    Attributes attributes;
    attributes.Set("exclusive", without_own);
    attributes.Set("reverse", reverse);
    return b.Emit("CumProd", {operand, b.Int(along_axis)}, std::move(attributes));
  };
  // Entries of the matrix of the last two axes that are `least` behind the diagonal or more, in the direction of time.
  const auto behind = [&](Value* operand, int64_t least) {
    Attributes attributes;
    attributes.Set("upper", int64_t{!reverse});
    return b.Emit("Trilu", {operand, b.Int(reverse ? -least : least)}, std::move(attributes));
  };
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[along], order.back());
  Attributes swapped;
  swapped.Set("perm", order);
  const bool last = along + 1 == rank;
  Value* lines = last ? b.input(0) : b.Emit("Transpose", {b.input(0)}, swapped);
  Value* d_lines = last ? dy[0] : b.Emit("Transpose", {dy[0]}, swapped);
  if (!b.status().ok()) return gradients;
  Shape row = lines->type.shape, square = row;
  row.insert(row.end() - 1, 1);
  square.push_back(n);
  // Row k of the matrix: x behind k, 1 up to k.
  Value* ones = b.Emit("Expand", {b.Scalar(x.dtype, 1), b.Ints({n, n})});
  Value* later = behind(b.Emit("Expand", {b.Reshape(lines, row), b.Ints(square)}), 1);
  Value* between = product(b.Emit("Add", {later, b.Emit("Sub", {ones, behind(ones, 1)})}), rank, exclusive);
  Attributes dropped;
  dropped.Set("keepdims", int64_t{0});
  Value* shares = b.Emit("Mul", {behind(between, exclusive), b.Reshape(d_lines, row)});
  Value* sums = b.Emit("ReduceSum", {shares, b.Ints({rank})}, std::move(dropped));
  Value* dx = b.Emit("Mul", {product(lines, rank - 1, 1), sums});
  gradients[0] = last ? dx : b.Emit("Transpose", {dx}, swapped);
  return gradients;
}

// Its own inverse.
Gradients ReverseSequence(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  gradients[0] = b.Emit("ReverseSequence", {dy[0], b.input(1)}, b.forward()->attributes);
  return gradients;
}

// Where place `i` of a padded axis of `size` places reads, `i` counted from the operand's first.
int64_t Source(absl::string_view mode, int64_t i, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap") return (i % size + size) % size;
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1);  // reflect
  const int64_t place = (i % period + period) % period;
  return place < size ? place : period - place;
}

// Constant padding: dY is padded the other way round; the constant gets what lies outside of X. Otherwise
// padding reads along one axis after the other, so that gradients add up where it read.
Gradients Pad(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const TensorType& x = b.input(0)->type;
  const std::string mode = b.forward()->attributes.String("mode", "constant");
  std::vector<int64_t> pads = b.ConstantInts(b.input(1)), axes;
  if (b.input(3)) axes = b.ConstantInts(b.input(3));
  if (!b.status().ok()) return gradients;
  if (!b.input(3)) {
    for (int i = 0; i < x.shape.size(); ++i) axes.push_back(i);
  }
  for (int64_t& axis : axes) axis += axis < 0 ? x.shape.size() : 0;
  const int count = axes.size();
  if (mode == "constant") {
    if (wanted.size() > 2 && wanted[2]) {
      Value* outside = b.Emit("Pad", {b.Zeros(x), b.input(1), b.Scalar(x.dtype, 1), b.input(3)});
      gradients[2] = b.SumToShape(b.Emit("Mul", {dy[0], outside}), {});
    }
    for (int64_t& pad : pads) pad = -pad;
    if (wanted[0]) gradients[0] = b.Emit("Pad", {dy[0], b.Ints(pads), nullptr, b.Ints(axes)});
    return gradients;
  }
  Value* dx = dy[0];
  for (int k = 0; k < count && dx; ++k) {
    const int64_t axis = axes[k], size = x.shape[axis];
    if (pads[k] == 0 && pads[k + count] == 0) continue;
    std::vector<int64_t> sources;
    for (int64_t i = -pads[k]; i < size + pads[k + count]; ++i) sources.push_back(Source(mode, i, size));
    std::vector<int64_t> shape(dx->type.shape.begin(), dx->type.shape.end());
    shape[axis] = size;
    Attributes attributes;
    attributes.Set("axis", axis);
    attributes.Set("shape", std::move(shape));
    dx = b.Emit("GatherGrad", {dx, b.Ints(sources)}, std::move(attributes), kPipecDomain);
  }
  gradients[0] = dx;
  return gradients;
}

const GradientRuleEntry kRules[] = {{"CumSum", "", CumSum},
                                    {"CumProd", "", CumProd},
                                    {"ReverseSequence", "", ReverseSequence},
                                    {"Pad", "", Pad}};

}  // namespace

absl::Span<const GradientRuleEntry> SequenceRules() { return kRules; }

}  // namespace pipec
