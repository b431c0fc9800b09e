// Ops that read and write elements at computed places: what was read several times adds up, what was
// overwritten has gradient zero. At ties the reductions max and min share the gradient evenly among the
// elements that reach the extreme, the old one included, as torch.scatter_reduce.
#include <numeric>

#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// One of the two ways to name places, with the forward node's attributes for it.
struct Places {
  GradientBuilder& b;
  absl::string_view gather, scatter;
  Value* indices;
  Attributes attributes;

  Value* Read(Value* data) const { return b.Emit(gather, {data, indices}, attributes); }
  Value* Write(Value* data, Value* updates, absl::string_view reduction) const {
    Attributes written = attributes;
    written.Set("reduction", std::string(reduction));
    return b.Emit(scatter, {data, indices, updates}, std::move(written));
  }
};

Places Elements(GradientBuilder& b, Value* indices) {
  Attributes attributes;
  attributes.Set("axis", b.forward()->attributes.Int("axis"));
  return {b, "GatherElements", "ScatterElements", indices, std::move(attributes)};
}

Gradients GatherElements(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  gradients[0] = Elements(b, b.input(1)).Write(b.Zeros(b.input(0)->type), dy[0], "add");
  return gradients;
}

// With the places along the batch axes in front of the indices: what batch_dims stands for.
Value* WholeIndices(GradientBuilder& b) {
  Value* indices = b.input(1);
  const int64_t batch_dims = b.forward()->attributes.Int("batch_dims");
  if (batch_dims == 0) return indices;
  Shape shape = indices->type.shape;
  shape.back() = batch_dims;
  std::vector<int64_t> places(NumElements(shape));
  const int64_t rows = places.size() / batch_dims;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
      if (i < batch_dims) places[row * batch_dims + i] = rest % shape[i];
      rest /= shape[i];
    }
  }
  Attributes last;
  last.Set("axis", int64_t{-1});
  return b.Emit("Concat", {b.Reshape(b.Ints(places), shape), indices}, std::move(last));
}

Gradients GatherNd(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const Places places{b, "GatherND", "ScatterND", WholeIndices(b), {}};
  gradients[0] = places.Write(b.Zeros(b.input(0)->type), dy[0], "add");
  return gradients;
}

// Y is a product of data and updates: each factor's gradient is that of the others, which zeros do not spoil: they are
// counted, and a product without them is kept.
Gradients ScatterProduct(const Places& places, Value* dy, const Wanted& wanted) {
  GradientBuilder& b = places.b;
  Gradients gradients(wanted.size());
  const TensorType &data = b.input(0)->type, &updates = b.input(2)->type;
  Value* ones = b.Emit("Expand", {b.Scalar(data.dtype, 1), b.Ints(data.shape)});
  if (wanted[0]) gradients[0] = b.Emit("Mul", {dy, places.Write(ones, b.input(2), "mul")});
  if (!wanted[2]) return gradients;
  Attributes to;
  to.Set("to", static_cast<int64_t>(updates.dtype));
  Value* is_zero = b.Emit("Equal", {b.input(2), b.Scalar(updates.dtype, 0)});
  Value* own_zeros = b.Emit("Cast", {is_zero}, to);
  Value* factors = b.Emit("Where", {is_zero, b.Scalar(updates.dtype, 1), b.input(2)});
  Value* zeros = places.Read(places.Write(b.Zeros(data), own_zeros, "add"));
  Value* product = places.Read(b.Emit("Mul", {dy, places.Write(b.input(0), factors, "mul")}));
  // No zero but the own one.
  Value* counts = b.Emit("Equal", {zeros, own_zeros});
  gradients[2] = b.Emit("Where", {counts, b.Emit("Div", {product, factors}), b.Scalar(updates.dtype, 0)});
  return gradients;
}

// Y = data with updates written, added, multiplied or compared at the places.
Gradients Scatter(const Places& places, Value* dy, const Wanted& wanted) {
  GradientBuilder& b = places.b;
  const std::string reduction = b.forward()->attributes.String("reduction", "none");
  Gradients gradients(wanted.size());
  if (reduction == "none" || reduction == "add") {
    if (wanted[0]) {
      gradients[0] = reduction == "add" ? dy : places.Write(dy, b.Zeros(b.input(2)->type), "none");
    }
    if (wanted[2]) gradients[2] = places.Read(dy);
    return gradients;
  }
  if (reduction == "mul") return ScatterProduct(places, dy, wanted);
  Attributes to;
  to.Set("to", static_cast<int64_t>(dy->type.dtype));
  Value* data_hits = b.Emit("Cast", {b.Emit("Equal", {b.input(0), b.output(0)})}, to);
  Value* update_hits = b.Emit("Cast", {b.Emit("Equal", {b.input(2), places.Read(b.output(0))})}, to);
  Value* share = b.Emit("Div", {dy, places.Write(data_hits, update_hits, "add")});
  if (wanted[0]) gradients[0] = b.Emit("Mul", {share, data_hits});
  if (wanted[2]) gradients[2] = b.Emit("Mul", {places.Read(share), update_hits});
  return gradients;
}

Gradients ScatterElements(GradientBuilder& b, Span dy, const Wanted& wanted) {
  return Scatter(Elements(b, b.input(1)), dy[0], wanted);
}

Gradients ScatterNd(GradientBuilder& b, Span dy, const Wanted& wanted) {
  return Scatter({b, "GatherND", "ScatterND", b.input(1), {}}, dy[0], wanted);
}

// Update i of a sample was written at place (index + i) mod length along the axis.
Gradients TensorScatter(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const Attributes& forward = b.forward()->attributes;
  if (wanted[0])
    gradients[0] = b.Emit("TensorScatter", {dy[0], b.Zeros(b.input(1)->type), b.input(2)}, forward);
  if (!wanted[1]) return gradients;
  const Shape &cache = b.input(0)->type.shape, &update = b.input(1)->type.shape;
  int64_t axis = forward.Int("axis", -2);
  if (axis < 0) axis += cache.size();
  std::vector<int64_t> steps(update[axis]);
  std::iota(steps.begin(), steps.end(), 0);
  Shape line(cache.size(), 1), samples(cache.size(), 1);
  line[axis] = update[axis];
  samples[0] = cache[0];
  Value* place = b.Reshape(b.Ints(steps), line);
  if (b.input(2)) {
    Value* moved = b.Emit("Add", {b.Reshape(b.input(2), samples), place});
    place = b.Emit("Mod", {moved, b.Int(cache[axis])});
  }
  Attributes along;
  along.Set("axis", axis);
  gradients[1] =
      b.Emit("GatherElements", {dy[0], b.Emit("Expand", {place, b.Ints(update)})}, std::move(along));
  return gradients;
}

// The values come from the places that output 1 names.
Gradients TopK(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  Attributes along;
  along.Set("axis", b.forward()->attributes.Int("axis", -1));
  const Places places{b, "GatherElements", "ScatterElements", b.RequireOutput(1), std::move(along)};
  gradients[0] = places.Write(b.Zeros(b.input(0)->type), dy[0], "none");
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"GatherElements", "", GatherElements},   {"GatherND", "", GatherNd},
    {"ScatterElements", "", ScatterElements}, {"ScatterND", "", ScatterNd},
    {"TensorScatter", "", TensorScatter},     {"TopK", "", TopK},
};

}  // namespace

absl::Span<const GradientRuleEntry> ScatterRules() { return kRules; }

}  // namespace pipec
