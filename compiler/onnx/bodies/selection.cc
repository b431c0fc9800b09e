// The gradients of Gather and Slice.
#include <algorithm>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;
using Dims = std::vector<int64_t>;

Dims ToDims(const Shape& shape) { return {shape.begin(), shape.end()}; }

// `shape` with `size` places along `axis`.
Dims With(Dims shape, int64_t axis, int64_t size) {
  shape[axis] = size;
  return shape;
}

// [n] along `axis` of a tensor of this shape.
Name Along(Body& b, Name places, const Dims& shape, int64_t axis) {
  return b.Op("Expand", {b.Reshape(std::move(places), With(Dims(shape.size(), 1), axis, -1)), b.Ints(shape)});
}

// (dY, indices) -> (dData)
void GatherGrad(Body& b) {
  const Dims shape = b.attributes().Ints("shape");
  const int64_t rank = static_cast<int64_t>(shape.size()), given = b.attributes().Int("axis");
  const int64_t axis = given < 0 ? given + rank : given;
  const Dims gathered = With(shape, axis, b.type(1).elements());
  const Name indices = Along(b, b.in(1), gathered, axis);
  b.Result(0,
           b.Op("ScatterElements", {b.Full(b.type(0).dtype, shape, 0), indices, b.Reshape(b.in(0), gathered)},
                {{"axis", axis}, {"reduction", std::string("add")}}));
}

// (dY) -> (dX): put back axis by axis.
void SliceGrad(Body& b) {
  const Dims shape = b.attributes().Ints("shape"), starts = b.attributes().Ints("starts"),
             axes = b.attributes().Ints("axes"), steps = b.attributes().Ints("steps");
  Dims now = ToDims(b.shape(0));
  Name x = b.in(0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k], count = now[axis];
    if (count == shape[axis] && steps[k] == 1) continue;
    Dims places(count);
    for (int64_t i = 0; i < count; ++i) places[i] = starts[k] + i * steps[k];
    const Name indices = Along(b, b.Ints(places), now, axis);
    now[axis] = shape[axis];
    x = b.Op("ScatterElements", {b.Full(b.type(0).dtype, now, 0), indices, x}, {{"axis", axis}});
  }
  b.Result(0, x);
}

const BodyRow kRows[] = {{"GatherGrad", "dY indices", "", GatherGrad}, {"SliceGrad", "dY", "", SliceGrad}};

}  // namespace

absl::Span<const BodyRow> SelectionBodies() { return kRows; }

}  // namespace pipec
