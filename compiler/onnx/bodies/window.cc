// The gradients of convolutions and pooling. Places are what the windows slide over: X of Conv, Y of
// ConvTranspose. To scatter windows over places is ONNX's ConvTranspose, to gather places is its Conv; both
// here without padding, which is added or cut off beside them.
#include <algorithm>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;
using Dims = std::vector<int64_t>;

struct Axis {
  int64_t places, windows, kernel, stride = 1, dilation = 1, before = 0, after = 0;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // From the first place that a window may reach to the last.
  int64_t span() const { return (windows - 1) * stride + reach(); }
};
using Axes = std::vector<Axis>;

// The spatial axes, from three shapes (N, C, spatial...) and the attributes; `kernel` has no N and C.
// runtime/device/cpu/kernels/window.cc says where padding goes.
Axes ReadAxes(const Body& b, const Dims& places, const Dims& windows, const Dims& kernel, bool transposed) {
  const auto values = [&](absl::string_view name) { return b.attributes().Ints(name); };
  const Dims strides = values("strides"), dilations = values("dilations"), pads = values("pads"),
             output_shape = values("output_shape"), extra = values("output_padding");
  const std::string mode = b.attributes().String("auto_pad", "NOTSET");
  const size_t rank = kernel.size();
  Axes axes;
  for (size_t i = 0; i < rank; ++i) {
    Axis axis{places[i + 2], windows[i + 2], kernel[i]};
    if (!strides.empty()) axis.stride = strides[i];
    if (!dilations.empty()) axis.dilation = dilations[i];
    if (!pads.empty() && mode == "NOTSET") axis.before = pads[i], axis.after = pads[rank + i];
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (same || (transposed && !output_shape.empty())) {
      const int64_t padding = std::max<int64_t>(
          transposed ? axis.span() + (extra.empty() ? 0 : extra[i]) - axis.places : axis.span() - axis.places,
          0);
      axis.before = mode == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
      axis.after = padding - axis.before;
    }
    axes.push_back(axis);
  }
  return axes;
}

Dims Spatial(const Axes& axes, int64_t (*value)(const Axis&)) {
  Dims values;
  for (const Axis& axis : axes) values.push_back(value(axis));
  return values;
}

Dims SpatialAxes(const Axes& axes) {
  Dims numbers;
  for (size_t i = 0; i < axes.size(); ++i) numbers.push_back(static_cast<int64_t>(i) + 2);
  return numbers;
}

// The first `sizes` of every spatial axis, from `starts` on.
Name Crop(Body& b, Name x, const Axes& axes, const Dims& starts, Dims sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += starts[i];
  return b.Op("Slice", {std::move(x), b.Ints(starts), b.Ints(sizes), b.Ints(SpatialAxes(axes))});
}

Body::AttributeList Geometry(const Axes& axes, int64_t group) {
  return {{"strides", Spatial(axes, [](const Axis& a) { return a.stride; })},
          {"dilations", Spatial(axes, [](const Axis& a) { return a.dilation; })},
          {"group", group}};
}

// Places, from windows and W (channels of windows, channels of places in a group, taps).
Name Scatter(Body& b, Name windows, Name w, const Axes& axes, int64_t group) {
  Name full = b.Op("ConvTranspose", {std::move(windows), std::move(w)}, Geometry(axes, group));
  const Dims before = Spatial(axes, [](const Axis& a) { return a.before; });
  // Places that no window reaches.
  Dims pads(2 * (axes.size() + 2), 0);
  for (size_t i = 0; i < axes.size(); ++i)
    pads[axes.size() + 4 + i] = std::max<int64_t>(0, axes[i].before + axes[i].places - axes[i].span());
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad > 0; }))
    full = b.Op("Pad", {full, b.Ints(pads)});
  return Crop(b, full, axes, before, Spatial(axes, [](const Axis& a) { return a.places; }));
}

// Padding that makes room for every window and no more than the last stride needs.
Dims Pads(const Axes& axes) {
  Dims pads;
  for (const Axis& axis : axes) pads.push_back(axis.before);
  for (const Axis& axis : axes) pads.push_back(std::max<int64_t>(0, axis.span() - axis.before - axis.places));
  return pads;
}

// Windows, from places and W.
Name Gather(Body& b, Name places, Name w, const Axes& axes, int64_t group) {
  Body::AttributeList attributes = Geometry(axes, group);
  attributes.push_back({"pads", Pads(axes)});
  const Name windows = b.Op("Conv", {std::move(places), std::move(w)}, std::move(attributes));
  return Crop(b, windows, axes, Dims(axes.size(), 0), Spatial(axes, [](const Axis& a) { return a.windows; }));
}

// (N, groups * c, spatial...) as (c, groups * N, spatial...) if `inner`, else as (groups * c, N, spatial...)
Name ChannelsFirst(Body& b, Name x, const Dims& shape, int64_t groups, bool inner) {
  Dims split = {shape[0], groups, shape[1] / groups}, perm = inner ? Dims{2, 1, 0} : Dims{1, 2, 0};
  Dims merged = inner ? Dims{shape[1] / groups, groups * shape[0]} : Dims{shape[1], shape[0]};
  for (size_t i = 2; i < shape.size(); ++i) {
    split.push_back(shape[i]);
    perm.push_back(static_cast<int64_t>(i) + 1);
    merged.push_back(shape[i]);
  }
  return b.Reshape(b.Transpose(b.Reshape(std::move(x), split), perm), merged);
}

// dW (channels of windows, channels of places in a group, taps): the windows slide over the places as the
// kernel does, with stride and dilation exchanged.
Name WeightGradient(Body& b, Name places, const Dims& places_shape, Name windows, const Dims& windows_shape,
                    const Axes& axes, int64_t group) {
  Body::AttributeList attributes = {{"strides", Spatial(axes, [](const Axis& a) { return a.dilation; })},
                                    {"dilations", Spatial(axes, [](const Axis& a) { return a.stride; })},
                                    {"pads", Pads(axes)},
                                    {"group", group}};
  const Name product = b.Op("Conv",
                            {ChannelsFirst(b, std::move(places), places_shape, group, true),
                             ChannelsFirst(b, std::move(windows), windows_shape, group, false)},
                            std::move(attributes));
  const Name cropped =
      Crop(b, product, axes, Dims(axes.size(), 0), Spatial(axes, [](const Axis& a) { return a.kernel; }));
  Dims perm = {1, 0};
  for (size_t i = 2; i < places_shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  return b.Transpose(cropped, perm);
}

Dims ToDims(const Shape& shape) { return {shape.begin(), shape.end()}; }
Dims Taps(const Dims& w) { return {w.begin() + 2, w.end()}; }
int64_t Group(const Body& b) { return b.attributes().Int("group", 1); }

// (dY, W) -> (dX)
void ConvInputGrad(Body& b) {
  const Dims w = ToDims(b.shape(1));
  const Axes axes = ReadAxes(b, b.attributes().Ints("shape"), ToDims(b.shape(0)), Taps(w), false);
  b.Result(0, Scatter(b, b.in(0), b.in(1), axes, Group(b)));
}

// (dY, X) -> (dW)
void ConvWeightGrad(Body& b) {
  const Dims dy = ToDims(b.shape(0)), x = ToDims(b.shape(1));
  const Axes axes = ReadAxes(b, x, dy, Taps(b.attributes().Ints("shape")), false);
  b.Result(0, WeightGradient(b, b.in(1), x, b.in(0), dy, axes, Group(b)));
}

// (dY, W) -> (dX)
void ConvTransposeInputGrad(Body& b) {
  const Axes axes =
      ReadAxes(b, ToDims(b.shape(0)), b.attributes().Ints("shape"), Taps(ToDims(b.shape(1))), true);
  b.Result(0, Gather(b, b.in(0), b.in(1), axes, Group(b)));
}

// (dY, X) -> (dW)
void ConvTransposeWeightGrad(Body& b) {
  const Dims dy = ToDims(b.shape(0)), x = ToDims(b.shape(1));
  const Axes axes = ReadAxes(b, dy, x, Taps(b.attributes().Ints("shape")), true);
  b.Result(0, WeightGradient(b, b.in(0), dy, b.in(1), x, axes, Group(b)));
}

// How many taps of each window count.
Dims Counts(const Axis& axis, bool padding) {
  Dims counts;
  for (int64_t o = 0; o < axis.windows; ++o) {
    const int64_t start = o * axis.stride - axis.before;
    int64_t count = 0;
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t place = start + k * axis.dilation;
      count += padding ? place < axis.places + axis.after : place >= 0 && place < axis.places;
    }
    counts.push_back(count);
  }
  return counts;
}

// Numbers along a spatial axis, one for each of its windows.
Name Along(Body& b, const Dims& numbers, DType dtype, size_t axis, size_t rank) {
  Dims shape(rank, 1);
  shape[axis + 2] = -1;
  return b.Reshape(b.Cast(b.Ints(numbers), dtype), shape);
}

// (dY, Indices) -> (dX): Indices count through all of X, its places with the first axis fastest if
// storage_order is 1. A window in the padding alone has read nothing, though it has an index.
void MaxPoolGrad(Body& b) {
  const Dims shape = b.attributes().Ints("shape");
  const Axes axes = ReadAxes(b, shape, ToDims(b.shape(0)), b.attributes().Ints("kernel_shape"), false);
  Name dy = b.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dims counts = Counts(axes[i], false);
    if (std::find(counts.begin(), counts.end(), 0) == counts.end()) continue;
    dy = b.Where(Along(b, counts, DType::kBool, i, shape.size()), dy, b.Scalar(b.type(0).dtype, 0));
  }
  int64_t places = 1;
  for (size_t i = 2; i < shape.size(); ++i) places *= shape[i];
  const auto number = [&](int64_t value) { return b.Scalar(DType::kInt64, static_cast<double>(value)); };
  Name at = b.in(1);
  if (b.attributes().Int("storage_order") != 0) {
    Name rest = b.Op("Mod", {at, number(places)}), place = b.Sub(at, rest);
    int64_t step = places;
    for (size_t i = 2; i < shape.size(); ++i) {
      step /= shape[i];
      place = b.Add(place, b.Mul(b.Op("Mod", {rest, number(shape[i])}), number(step)));
      rest = b.Div(rest, number(shape[i]));
    }
    at = place;
  }
  const Name zeros = b.Full(b.type(0).dtype, {shape[0] * shape[1] * places}, 0);
  const Name flat = b.Op("ScatterElements", {zeros, b.Reshape(at, {-1}), b.Reshape(dy, {-1})},
                         {{"reduction", std::string("add")}});
  b.Result(0, b.Reshape(flat, shape));
}

// (dY) -> (dX)
void AveragePoolGrad(Body& b) {
  const Dims kernel = b.attributes().Ints("kernel_shape"), shape = b.attributes().Ints("shape");
  const Axes axes = ReadAxes(b, shape, ToDims(b.shape(0)), kernel, false);
  const DType dtype = b.type(0).dtype;
  Name share = b.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dims counts = Counts(axes[i], b.attributes().Int("count_include_pad") != 0);
    share = b.Div(share, Along(b, counts, dtype, i, shape.size()));
  }
  Dims w = {shape[1], 1};
  w.insert(w.end(), kernel.begin(), kernel.end());
  b.Result(0, Scatter(b, share, b.Full(dtype, w, 1), axes, shape[1]));
}

const BodyRow kRows[] = {
    {"ConvInputGrad", "dY W", "", ConvInputGrad},
    {"ConvWeightGrad", "dY X", "", ConvWeightGrad},
    {"ConvTransposeInputGrad", "dY W", "", ConvTransposeInputGrad},
    {"ConvTransposeWeightGrad", "dY X", "", ConvTransposeWeightGrad},
    {"MaxPoolGrad", "dY Indices", "", MaxPoolGrad},
    {"AveragePoolGrad", "dY", "", AveragePoolGrad},
};

}  // namespace

absl::Span<const BodyRow> WindowBodies() { return kRows; }

}  // namespace pipec
