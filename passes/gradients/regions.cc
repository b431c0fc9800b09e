// RoiAlign and MaxRoiPool: gradients of X. Regions of interest do not learn, as in torchvision.ops.
#include <limits>

#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Attributes Along(int64_t axis) {
  Attributes attributes;
  attributes.Set("axis", axis);
  return attributes;
}

Attributes CastTo(DType dtype) {
  Attributes attributes;
  attributes.Set("to", static_cast<int64_t>(dtype));
  return attributes;
}

Value* Column(GradientBuilder& b, Value* rois, int64_t column) {
  return b.Emit("Gather", {rois, b.Ints({column})}, Along(1));
}

// Over one axis, which is dropped.
Value* Largest(GradientBuilder& b, Value* x, int64_t axis) {
  Attributes dropped;
  dropped.Set("keepdims", int64_t{0});
  return b.Emit("ReduceMax", {x, b.Ints({axis})}, std::move(dropped));
}
Value* PlaceOfLargest(GradientBuilder& b, Value* x, int64_t axis) {
  Attributes attributes = Along(axis);
  attributes.Set("keepdims", int64_t{0});
  return b.Emit("ArgMax", {x}, std::move(attributes));
}

// The regions' gradients [R, C, H, W], added up by sample.
Value* BySample(GradientBuilder& b, Value* of_regions, Value* samples) {
  const Shape& x = b.input(0)->type.shape;
  Attributes attributes = Along(0);
  attributes.Set("shape", std::vector<int64_t>(x.begin(), x.end()));
  return b.Emit("GatherGrad", {of_regions, samples}, std::move(attributes), kPipecDomain);
}

// The means over a region's points are products of means along the axes: Y = A X B^T with matrices of each region. A is
// what RoiAlign makes of the identity of H, as H channels of one column; the region then covers that column.
Value* MatrixOfAxis(GradientBuilder& b, int64_t size, int64_t bins, Value* from, Value* to) {
  const DType dtype = b.input(0)->type.dtype;
  const int64_t regions = b.input(1)->type.shape[0];
  const float scale = b.forward()->attributes.Float("spatial_scale", 1);
  Attributes attributes = b.forward()->attributes;
  attributes.Set("output_height", bins);
  attributes.Set("output_width", int64_t{1});
  Value* identity = b.Reshape(b.Emit("EyeLike", {b.Zeros({dtype, {size, size}})}), {1, size, size, 1});
  Value* left = b.Zeros({dtype, {regions, 1}});
  Value* right = b.Emit("Expand", {b.Scalar(dtype, 1 / static_cast<double>(scale)), b.Ints({regions, 1})});
  Value* rois = b.Emit("Concat", {left, from, right, to}, Along(1));
  Value* none = b.Emit("Expand", {b.Int(0), b.Ints({regions})});
  // [R, size, bins, 1]
  return b.Reshape(b.Emit("RoiAlign", {identity, rois, none}, std::move(attributes)),
                   {regions, 1, size, bins});
}

Gradients RoiAlign(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  if (b.forward()->attributes.String("mode", "avg") != "avg") {
    b.Fail(absl::UnimplementedError("mode max; wanted avg"));
    return gradients;
  }
  if (!wanted[0]) return gradients;
  const Shape &x = b.input(0)->type.shape, &y = dy[0]->type.shape;
  Value* rois = b.input(1);
  Value* rows = MatrixOfAxis(b, x[2], y[2], Column(b, rois, 1), Column(b, rois, 3));
  Value* columns = MatrixOfAxis(b, x[3], y[3], Column(b, rois, 0), Column(b, rois, 2));
  Attributes transposed;
  transposed.Set("trans_b", int64_t{1});
  Value* wide = b.Emit("FusedMatMul", {rows, dy[0]}, {}, kPipecDomain);
  Value* of_regions = b.Emit("FusedMatMul", {wide, columns}, std::move(transposed), kPipecDomain);
  gradients[0] = BySample(b, of_regions, b.input(2));
  return gradients;
}

// Whether a place of an axis lies in a bin of a region: bool [R, bins, size]. The bins' ends are the forward op's.
Value* InBin(GradientBuilder& b, int64_t size, int64_t bins, Value* from, Value* to) {
  const DType dtype = b.input(0)->type.dtype;
  const double scale = b.forward()->attributes.Float("spatial_scale", 1);
  const auto counted = [&](int64_t count, absl::Span<const int64_t> shape) {
    std::vector<int64_t> numbers(count);
    for (int64_t i = 0; i < count; ++i) numbers[i] = i;
    return b.Emit("Cast", {b.Reshape(b.Ints(numbers), shape)}, CastTo(dtype));
  };
  // To the nearest place, halves away from 0.
  const auto rounded = [&](Value* corner) {
    Value* x = b.Emit("Mul", {corner, b.Scalar(dtype, scale)});
    Value* up = b.Emit("Floor", {b.Emit("Add", {b.Emit("Abs", {x}), b.Scalar(dtype, 0.5)})});
    return b.Emit("Mul", {b.Emit("Sign", {x}), up});
  };
  Value *first = rounded(from), *last = rounded(to);
  Value* one = b.Scalar(dtype, 1);
  Value* covered = b.Emit("Max", {b.Emit("Add", {b.Emit("Sub", {last, first}), one}), one});
  Value* length = b.Emit("Div", {covered, b.Scalar(dtype, static_cast<double>(bins))});
  Value* bin = counted(bins, {1, bins});
  Value* begin = b.Emit("Add", {b.Emit("Floor", {b.Emit("Mul", {bin, length})}), first});
  Value* end = b.Emit("Add", {b.Emit("Ceil", {b.Emit("Mul", {b.Emit("Add", {bin, one}), length})}), first});
  const int64_t regions = b.input(1)->type.shape[0];
  Value* place = counted(size, {1, 1, size});
  Value* not_before = b.Emit("GreaterOrEqual", {place, b.Reshape(begin, {regions, bins, 1})});
  return b.Emit("And", {not_before, b.Emit("Less", {place, b.Reshape(end, {regions, bins, 1})})});
}

// The gradient goes to the first of equal maxima, row by row, as in torchvision.ops.roi_pool; that of an empty bin
// goes nowhere. Each row's maximum comes first, then the maximum of the rows.
Gradients MaxRoiPool(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  if (!wanted[0]) return gradients;
  const TensorType& type = b.input(0)->type;
  const Shape &x = type.shape, &y = dy[0]->type.shape;
  const int64_t regions = y[0], channels = x[1];
  Value* rois = b.input(1);
  Value* samples = b.Reshape(b.Emit("Cast", {Column(b, rois, 0)}, CastTo(DType::kInt64)), {regions});
  Value* in_row = InBin(b, x[2], y[2], Column(b, rois, 2), Column(b, rois, 4));
  Value* in_column = InBin(b, x[3], y[3], Column(b, rois, 1), Column(b, rois, 3));
  Value* least = b.Scalar(type.dtype, -std::numeric_limits<double>::infinity());
  Value* planes =
      b.Reshape(b.Emit("Gather", {b.input(0), samples}, Along(0)), {regions, channels, x[2], 1, x[3]});
  Value* row_mask = b.Reshape(in_row, {regions, 1, y[2], 1, x[2]});
  Value* column_mask = b.Reshape(in_column, {regions, 1, 1, y[3], x[3]});
  // The best of each row of X within the bins' columns: [R, C, H, columns], then with H last.
  Value* lines = b.Emit("Where", {column_mask, planes, least});
  Attributes swapped;
  swapped.Set("perm", std::vector<int64_t>{0, 1, 3, 2});
  const auto rows_last = [&](Value* value) {
    return b.Reshape(b.Emit("Transpose", {value}, swapped), {regions, channels, 1, y[3], x[2]});
  };
  Value* best = rows_last(Largest(b, lines, 4));
  Value* best_column = rows_last(PlaceOfLargest(b, lines, 4));
  Value* row = PlaceOfLargest(b, b.Emit("Where", {row_mask, best, least}), 4);
  Value* columns = b.Emit("Expand", {best_column, b.Ints({regions, channels, y[2], y[3], x[2]})});
  Value* row_index = b.Reshape(row, {regions, channels, y[2], y[3], 1});
  Value* column = b.Reshape(b.Emit("GatherElements", {columns, row_index}, Along(4)), y);
  Value* place = b.Emit("Add", {b.Emit("Mul", {row, b.Int(x[3])}), column});
  const auto any = [&](Value* mask) { return Largest(b, b.Emit("Cast", {mask}, CastTo(type.dtype)), 2); };
  Value* filled = b.Emit("Mul", {b.Reshape(any(in_row), {regions, 1, y[2], 1}),
                                 b.Reshape(any(in_column), {regions, 1, 1, y[3]})});
  const Shape flat = {regions, channels, y[2] * y[3]};
  Attributes added = Along(2);
  added.Set("reduction", std::string("add"));
  Value* zeros = b.Zeros({type.dtype, {regions, channels, x[2] * x[3]}});
  Value* updates = b.Reshape(b.Emit("Mul", {dy[0], filled}), flat);
  Value* spread = b.Emit("ScatterElements", {zeros, b.Reshape(place, flat), updates}, std::move(added));
  gradients[0] = BySample(b, b.Reshape(spread, {regions, channels, x[2], x[3]}), samples);
  return gradients;
}

const GradientRuleEntry kRules[] = {{"RoiAlign", "", RoiAlign}, {"MaxRoiPool", "", MaxRoiPool}};

}  // namespace

absl::Span<const GradientRuleEntry> RegionRules() { return kRules; }

}  // namespace pipec
