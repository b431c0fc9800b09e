// Ops that read and write elements at computed places: what was read several times adds up, what was
// overwritten has gradient zero. At ties the reductions max and min share the gradient evenly among the
// elements that reach the extreme, the old one included, as torch.scatter_reduce.
#include "absl/strings/str_cat.h"
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

// Y = data with updates written, added or compared at the places.
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
  if (reduction != "max" && reduction != "min") {
    b.Fail(absl::UnimplementedError(absl::StrCat("reduction ", reduction, "; wanted none, add, max or min")));
    return gradients;
  }
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
    {"GatherElements", "", GatherElements},
    {"GatherND", "", GatherNd},
    {"ScatterElements", "", ScatterElements},
    {"ScatterND", "", ScatterNd},
    {"TopK", "", TopK},
};

}  // namespace

absl::Span<const GradientRuleEntry> ScatterRules() { return kRules; }

}  // namespace pipec
