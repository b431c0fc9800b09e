// Ops whose results have as many entries as the data say: ONNX's op, with zeros behind what is there.
#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;

// `x` filled up along `axis` to the size that result k has there.
Name Filled(Body& b, Name x, int k, int64_t axis) {
  const Shape& shape = b.node().output(k)->type.shape;
  const Name size = b.Op("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
  const Name missing = b.Sub(b.Ints({shape[axis]}), size);
  const Name pads = b.Op("Concat", {b.Ints({0}), missing}, {{"axis", int64_t{0}}});
  return b.Op("Pad", {std::move(x), pads, "", b.Ints({axis})});
}

// How many entries `x` has along `axis`; an int64 scalar.
Name Count(Body& b, const Name& x, int64_t axis) {
  return b.Reshape(b.Op("Shape", {x}, {{"start", axis}, {"end", axis + 1}}), {});
}

int64_t AxisOf(const Body& b) {
  const int64_t axis = b.attributes().Int("axis", 0);
  return axis < 0 ? axis + b.rank(0) : axis;
}

Body::AttributeList Given(const Body& b) { return {b.attributes().begin(), b.attributes().end()}; }

// (x) -> (y, count)
void NonZero(Body& b) {
  const Name y = b.Op("NonZero", {b.in(0)});
  b.Result(0, Filled(b, y, 0, 1));
  b.Result(1, Count(b, y, 1));
}

// (x, condition) -> (y, count)
void Compress(Body& b) {
  const Name y = b.Op("Compress", {b.in(0), b.in(1)}, Given(b));
  b.Result(0, Filled(b, y, 0, AxisOf(b)));
  b.Result(1, Count(b, y, AxisOf(b)));
}

// (x) -> (y, indices?, inverse_indices?, counts?, count)
void Unique(Body& b) {
  const Body::Names made = b.Ops("Unique", {b.in(0)}, Given(b), 4);
  b.Result(0, Filled(b, made[0], 0, AxisOf(b)));
  for (int k : {1, 3}) {
    if (b.node().output(k)) b.Result(k, Filled(b, made[k], k, 0));
  }
  b.Result(2, made[2]);
  b.Result(4, Count(b, made[0], AxisOf(b)));
}

// (boxes, scores, max?, iou?, score?) -> (selected, count)
void NonMaxSuppression(Body& b) {
  Body::Names operands;
  for (int i = 0; i < static_cast<int>(b.node().inputs().size()); ++i) operands.push_back(b.in(i));
  const Name selected = b.Op("NonMaxSuppression", std::move(operands), Given(b));
  b.Result(0, Filled(b, selected, 0, 0));
  b.Result(1, Count(b, selected, 0));
}

const BodyRow kRows[] = {
    {"NonZero", "x", "", NonZero},
    {"Compress", "x condition", "", Compress},
    {"Unique", "x", "", Unique},
    {"NonMaxSuppression", "boxes scores max iou score", "", NonMaxSuppression},
};

}  // namespace

absl::Span<const BodyRow> SizedByDataBodies() { return kRows; }

}  // namespace pipec
