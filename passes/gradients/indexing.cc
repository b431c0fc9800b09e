// Ops that read a part of their operand, and the ones that put parts together.
#include <algorithm>

#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

std::vector<int64_t> Ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

int64_t AxisOf(GradientBuilder& b) {
  const int64_t axis = b.forward()->attributes.Int("axis");
  return axis < 0 ? axis + b.output(0)->type.shape.size() : axis;
}

// An element that was gathered several times adds up.
Gradients Gather(GradientBuilder& b, Span dy, const Wanted&) {
  Attributes attributes;
  attributes.Set("axis", b.forward()->attributes.Int("axis"));
  attributes.Set("shape", Ints(b.input(0)->type.shape));
  return {b.Emit("GatherGrad", {dy[0], b.input(1)}, std::move(attributes), kPipecDomain), nullptr};
}

// dX from dY, which was read at starts[k] : : steps[k] along axes[k].
Value* SliceGradient(GradientBuilder& b, Value* dy, const Shape& shape, std::vector<int64_t> starts,
                     std::vector<int64_t> axes, std::vector<int64_t> steps) {
  Attributes attributes;
  attributes.Set("shape", Ints(shape));
  attributes.Set("starts", std::move(starts));
  attributes.Set("axes", std::move(axes));
  attributes.Set("steps", std::move(steps));
  return b.Emit("SliceGrad", {dy}, std::move(attributes), kPipecDomain);
}

Gradients Slice(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Shape& shape = b.input(0)->type.shape;
  std::vector<int64_t> starts = b.ConstantInts(b.input(1));
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (int i = 0; i < starts.size(); ++i) axes.push_back(i);
  if (b.input(3)) axes = b.ConstantInts(b.input(3));
  if (b.input(4)) steps = b.ConstantInts(b.input(4));
  Gradients gradients(wanted.size());
  if (!b.status().ok() || dy[0]->type.elements() == 0) return gradients;
  for (int i = 0; i < starts.size(); ++i) {
    if (axes[i] < 0) axes[i] += shape.size();
    const int64_t size = shape[axes[i]];
    if (starts[i] < 0) starts[i] += size;
    starts[i] = std::clamp<int64_t>(starts[i], 0, size - 1);
  }
  gradients[0] = SliceGradient(b, dy[0], shape, std::move(starts), std::move(axes), std::move(steps));
  return gradients;
}

// The pieces put together; an output that nobody used has gradient zero.
Gradients Split(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const int64_t axis = AxisOf(b);
  std::vector<Value*> pieces;
  for (int k = 0; k < dy.size(); ++k) {
    pieces.push_back(dy[k] ? dy[k] : b.output(k) ? b.Zeros(b.output(k)->type) : nullptr);
    if (!pieces.back()) b.Fail(absl::UnimplementedError("an output of Split is absent"));
  }
  Attributes attributes;
  attributes.Set("axis", axis);
  Gradients gradients(wanted.size());
  gradients[0] = b.Emit("Concat", std::move(pieces), std::move(attributes));
  return gradients;
}

Gradients Concat(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const int64_t axis = AxisOf(b);
  Gradients gradients(wanted.size());
  int64_t start = 0;
  for (int i = 0; i < wanted.size(); ++i) {
    const int64_t end = start + b.input(i)->type.shape[axis];
    if (wanted[i]) gradients[i] = b.Emit("Slice", {dy[0], b.Ints({start}), b.Ints({end}), b.Ints({axis})});
    start = end;
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"Gather", "", Gather}, {"Slice", "", Slice}, {"Split", "", Split}, {"Concat", "", Concat}};

}  // namespace

absl::Span<const GradientRuleEntry> IndexingRules() { return kRules; }

}  // namespace pipec
