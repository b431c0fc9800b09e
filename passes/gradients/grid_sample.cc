// GridSample: the gradient of X and of the grid, as torch.nn.functional.grid_sample's. The gradient of a coordinate
// is 0 in mode nearest, and where padding mode border holds it fast; reflection turns its sign with it. At a place
// itself, where linear interpolation bends, it is the slope to the next place.
#include <numeric>

#include "passes/gradients/interpolation.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;

struct Form {
  std::string mode, padding;
  bool align_corners;
  DType dtype;
};

Value* Constant(GradientBuilder& b, const Form& form, double value) { return b.Scalar(form.dtype, value); }

Value* ToInt(GradientBuilder& b, Value* x) {
  Attributes to;
  to.Set("to", static_cast<int64_t>(DType::kInt64));
  return b.Emit("Cast", {x}, std::move(to));
}

Value* ToFloat(GradientBuilder& b, const Form& form, Value* x) {
  Attributes to;
  to.Set("to", static_cast<int64_t>(form.dtype));
  return b.Emit("Cast", {x}, std::move(to));
}

// x thrown back at both ends as often as needed, and the sign that its slope has then.
struct Reflected {
  Value *x, *sign;
};

Reflected Reflect(GradientBuilder& b, const Form& form, Value* x, double low, double high) {
  const double range = high - low;
  Value* zero = Constant(b, form, 0);
  if (range <= 0)
    return {b.Emit("Add", {b.Emit("Mul", {x, zero}), Constant(b, form, low)}), b.Emit("Mul", {x, zero})};
  Value* from_low = b.Emit("Sub", {x, Constant(b, form, low)});
  Attributes truncated;
  truncated.Set("fmod", int64_t{1});
  Value* rest =
      b.Emit("Mod", {b.Emit("Abs", {from_low}), Constant(b, form, 2 * range)}, std::move(truncated));
  Value* back = b.Emit("Greater", {rest, Constant(b, form, range)});
  Value* turned = b.Emit("Where", {back, b.Emit("Sub", {Constant(b, form, 2 * range), rest}), rest});
  Value* sign = b.Emit("Where", {back, Constant(b, form, -1), Constant(b, form, 1)});
  return {b.Emit("Add", {turned, Constant(b, form, low)}), b.Emit("Mul", {sign, b.Emit("Sign", {from_low})})};
}

// Keys' cubic convolution with a = -0.75, as in torch, for the tap at distance d = k - t with 0 <= t < 1, and its
// slope in t.
void CubicWeight(GradientBuilder& b, const Form& form, Value* t, int k, Value** weight, Value** slope) {
  constexpr double a = -0.75;
  const bool near = k == 0 || k == 1;
  const double sign = k <= 0 ? 1 : -1;  // of d|d| / dt
  Value* offset = Constant(b, form, k);
  Value* d = sign > 0 ? b.Emit("Sub", {t, offset}) : b.Emit("Sub", {offset, t});
  // Horner's scheme.
  const auto polynomial = [&](std::vector<double> coefficients) {
    Value* sum = Constant(b, form, coefficients[0]);
    for (size_t i = 1; i < coefficients.size(); ++i)
      sum = b.Emit("Add", {b.Emit("Mul", {sum, d}), Constant(b, form, coefficients[i])});
    return sum;
  };
  *weight = near ? polynomial({a + 2, -(a + 3), 0, 1}) : polynomial({a, -5 * a, 8 * a, -4 * a});
  Value* along = near ? polynomial({3 * (a + 2), -2 * (a + 3), 0}) : polynomial({3 * a, -10 * a, 8 * a});
  *slope = sign > 0 ? along : b.Emit("Neg", {along});
}

// The taps of the axis at `coordinate` (float [N, points], -1 to 1); slopes in the coordinate.
SampledAxis TapsOf(GradientBuilder& b, const Form& form, Value* coordinate, int64_t size) {
  const double n = static_cast<double>(size);
  const double low = form.align_corners ? 0 : -0.5, high = form.align_corners ? n - 1 : n - 0.5;
  const double scale = form.align_corners ? (n - 1) / 2 : n / 2, shift = (n - 1) / 2;
  Value* x = b.Emit("Add", {b.Emit("Mul", {coordinate, Constant(b, form, scale)}), Constant(b, form, shift)});
  Value* slope = Constant(b, form, scale);
  if (form.padding != "zeros") {
    Value* below = b.Emit("Less", {x, Constant(b, form, low)});
    Value* outside = b.Emit("Or", {below, b.Emit("Greater", {x, Constant(b, form, high)})});
    Reflected moved;
    if (form.padding == "border") {
      Value* not_below = b.Emit("Max", {x, Constant(b, form, 0)});
      moved = {b.Emit("Min", {not_below, Constant(b, form, n - 1)}), Constant(b, form, 0)};
    } else {
      moved = Reflect(b, form, x, low, high);
    }
    slope = b.Emit("Where", {outside, b.Emit("Mul", {moved.sign, slope}), slope});
    x = b.Emit("Where", {outside, moved.x, x});
  }
  SampledAxis axis{size, {}};
  const bool nearest = form.mode == "nearest";
  Value* floor = b.Emit(nearest ? "Round" : "Floor", {x});
  Value* rest = nearest ? nullptr : b.Emit("Sub", {x, floor});
  const auto add = [&](int k, Value* weight, Value* weight_slope) {
    Value* at = b.Emit("Add", {floor, Constant(b, form, k)});
    if (form.padding == "reflection") {
      Value* below = b.Emit("Less", {at, Constant(b, form, low)});
      Value* outside = b.Emit("Or", {below, b.Emit("Greater", {at, Constant(b, form, high)})});
      at = b.Emit("Where", {outside, Reflect(b, form, at, low, high).x, at});
    }
    Value* place = ToInt(b, at);
    Value* index = b.Emit("Min", {b.Emit("Max", {place, b.Int(0)}), b.Int(size - 1)});
    if (form.padding == "zeros") {
      Value* inside = ToFloat(b, form, b.Emit("Equal", {place, index}));
      weight = b.Emit("Mul", {weight, inside});
      if (weight_slope) weight_slope = b.Emit("Mul", {weight_slope, inside});
    }
    if (weight_slope) weight_slope = b.Emit("Mul", {weight_slope, slope});
    axis.taps.push_back({index, weight, weight_slope});
  };
  if (nearest) {
    Value* one = b.Emit("Expand", {Constant(b, form, 1), b.Ints(x ? x->type.shape : Shape())});
    add(0, one, nullptr);
  } else if (form.mode == "linear") {
    add(0, b.Emit("Sub", {Constant(b, form, 1), rest}), Constant(b, form, -1));
    add(1, rest, Constant(b, form, 1));
  } else {
    for (int k = -1; k <= 2; ++k) {
      Value *weight, *weight_slope;
      CubicWeight(b, form, rest, k, &weight, &weight_slope);
      add(k, weight, weight_slope);
    }
  }
  return axis;
}

Gradients GridSample(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  Gradients gradients(2);
  const TensorType &x = b.input(0)->type, &grid = b.input(1)->type;
  const Attributes& a = b.forward()->attributes;
  const Form form{a.String("mode", "linear"), a.String("padding_mode", "zeros"), a.Int("align_corners") != 0,
                  x.dtype};
  if (grid.dtype != x.dtype) {
    b.Fail(absl::UnimplementedError("a grid of another type than X"));
    return gradients;
  }
  const int rank = static_cast<int>(x.shape.size()) - 2;
  Sampling sampling{{}, x.shape[0], x.shape[1], NumElements(absl::MakeSpan(dy[0]->type.shape).subspan(2))};
  Attributes last;
  last.Set("axis", int64_t{-1});
  for (int axis = 0; axis < rank; ++axis) {
    // The grid has the last axis of X first.
    Value* one = b.Emit("Gather", {b.input(1), b.Int(rank - 1 - axis)}, last);
    one = b.Reshape(one, {sampling.blocks, sampling.points});
    if (!one) return gradients;
    sampling.axes.push_back(TapsOf(b, form, one, x.shape[2 + axis]));
  }
  if (!b.status().ok()) return gradients;
  Value* d_points = b.Reshape(dy[0], {sampling.blocks, sampling.rows, sampling.points});
  if (wanted[0]) gradients[0] = b.Reshape(sampling.Spread(b, d_points), x.shape);
  if (!wanted[1] || form.mode == "nearest") return gradients;
  Value* places = b.Reshape(
      b.input(0), {sampling.blocks, sampling.rows, NumElements(absl::MakeSpan(x.shape).subspan(2))});
  std::vector<Value*> parts;
  for (int axis = rank; axis-- > 0;) {
    Value* part = sampling.OfCoordinate(b, places, d_points, axis);
    parts.push_back(b.Reshape(part, {sampling.blocks, sampling.points, 1}));
  }
  gradients[1] = b.Reshape(b.Emit("Concat", std::move(parts), last), grid.shape);
  return gradients;
}

const GradientRuleEntry kRules[] = {{"GridSample", "", GridSample}};

}  // namespace

absl::Span<const GradientRuleEntry> GridSampleRules() { return kRules; }

}  // namespace pipec
