// Ops along an axis: running sums, padding, reversed sequences.
#include <algorithm>

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

const GradientRuleEntry kRules[] = {
    {"CumSum", "", CumSum}, {"ReverseSequence", "", ReverseSequence}, {"Pad", "", Pad}};

}  // namespace

absl::Span<const GradientRuleEntry> SequenceRules() { return kRules; }

}  // namespace pipec
