// Reductions: dY gets its reduced axes back (as axes of size 1) and is spread over them. At ties ReduceMax and
// ReduceMin share the gradient evenly among the elements that reach the extreme, as torch.amax.
#include <algorithm>

#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

struct Reduced {
  std::vector<int64_t> axes;  // none: nothing was reduced
  Shape kept;                 // X's shape with 1 along the axes
  int64_t elements = 1;       // that went into one result
};

Reduced ReducedAxes(GradientBuilder& b) {
  const Shape& shape = b.input(0)->type.shape;
  Reduced reduced{.kept = shape};
  if (b.input(1)) reduced.axes = b.ConstantInts(b.input(1));
  if (reduced.axes.empty() && !b.forward()->attributes.Int("noop_with_empty_axes")) {
    for (int i = 0; i < shape.size(); ++i) reduced.axes.push_back(i);
  }
  for (int64_t& axis : reduced.axes) {
    if (axis < 0) axis += shape.size();
    reduced.elements *= shape[axis];
    reduced.kept[axis] = 1;
  }
  return reduced;
}

Value* Spread(GradientBuilder& b, Value* gradient, const Reduced& reduced) {
  if (gradient && gradient->type.elements() != 1) gradient = b.Reshape(gradient, reduced.kept);
  if (!gradient || gradient->type.shape == b.input(0)->type.shape) return gradient;
  return b.Emit("Expand", {gradient, b.Ints(b.input(0)->type.shape)});
}

Gradients ReduceSum(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  gradients[0] = Spread(b, dy[0], ReducedAxes(b));
  return gradients;
}

Gradients ReduceMean(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Reduced reduced = ReducedAxes(b);
  Gradients gradients(wanted.size());
  Value* share = b.Emit("Mul", {dy[0], b.Scalar(dy[0]->type.dtype, 1.0 / reduced.elements)});
  gradients[0] = Spread(b, share, reduced);
  return gradients;
}

// 2 x.
Gradients ReduceSumSquare(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Reduced reduced = ReducedAxes(b);
  Gradients gradients(wanted.size());
  Value* twice = b.Emit("Mul", {b.input(0), b.Scalar(dy[0]->type.dtype, 2)});
  gradients[0] = b.Emit("Mul", {twice, b.Reshape(dy[0], reduced.kept)});
  return gradients;
}

// The product of all other elements: of those before and those behind, so that a zero does no harm. The
// reduced axes are put last, as one.
Gradients ReduceProd(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Reduced reduced = ReducedAxes(b);
  Gradients gradients(wanted.size());
  const Shape& shape = b.input(0)->type.shape;
  if (!b.status().ok() || reduced.axes.empty()) {
    gradients[0] = dy[0];
    return gradients;
  }
  std::vector<int64_t> order, back(shape.size());
  Shape moved, flat;
  for (const bool last : {false, true}) {
    for (int i = 0; i < shape.size(); ++i) {
      if ((std::find(reduced.axes.begin(), reduced.axes.end(), i) != reduced.axes.end()) != last) continue;
      back[i] = order.size();
      order.push_back(i);
      moved.push_back(shape[i]);
      if (!last) flat.push_back(shape[i]);
    }
  }
  flat.push_back(reduced.elements);
  Attributes forth, around;
  forth.Set("perm", order);
  around.Set("perm", back);
  Value* rows = b.Reshape(b.Emit("Transpose", {b.input(0)}, std::move(forth)), flat);
  Value* others = nullptr;
  for (const int64_t reverse : {0, 1}) {
    Attributes attributes;
    attributes.Set("exclusive", int64_t{1});
    attributes.Set("reverse", reverse);
    Value* product =
        b.Emit("CumProd", {rows, b.Int(static_cast<int64_t>(flat.size()) - 1)}, std::move(attributes));
    others = others ? b.Emit("Mul", {others, product}) : product;
  }
  others = b.Emit("Transpose", {b.Reshape(others, moved)}, std::move(around));
  gradients[0] = b.Emit("Mul", {others, b.Reshape(dy[0], reduced.kept)});
  return gradients;
}

// Also ReduceMin.
Gradients ReduceMax(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Reduced reduced = ReducedAxes(b);
  Gradients gradients(wanted.size());
  if (reduced.axes.empty()) {
    gradients[0] = dy[0];
    return gradients;
  }
  Attributes to;
  to.Set("to", static_cast<int64_t>(dy[0]->type.dtype));
  Value* hits =
      b.Emit("Cast", {b.Emit("Equal", {b.input(0), b.Reshape(b.output(0), reduced.kept)})}, std::move(to));
  Value* count = b.Emit("ReduceSum", {hits, b.Ints(reduced.axes)});
  Value* share = b.Emit("Div", {b.Reshape(dy[0], reduced.kept), count});
  gradients[0] = b.Emit("Mul", {hits, share});
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"ReduceSum", "", ReduceSum}, {"ReduceMean", "", ReduceMean},           {"ReduceMax", "", ReduceMax},
    {"ReduceMin", "", ReduceMax}, {"ReduceSumSquare", "", ReduceSumSquare}, {"ReduceProd", "", ReduceProd}};

}  // namespace

absl::Span<const GradientRuleEntry> ReductionRules() { return kRules; }

}  // namespace pipec
