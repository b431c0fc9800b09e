// DeformConv: a convolution of what its taps read between the places of X. With S the samples [N, C, taps, windows],
// already weighted by the mask, Y = W S and dS = W^T dY; X, the offsets and the mask get theirs from dS, as
// torchvision.ops.deform_conv2d's.
#include "passes/gradients/interpolation.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;

struct Deform {
  int64_t samples, channels, filters, groups, offset_groups;
  int64_t kernel[2], out[2], in[2], strides[2], dilations[2], before[2];

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t windows() const { return out[0] * out[1]; }
};

Deform Read(GradientBuilder& b) {
  const Attributes& a = b.forward()->attributes;
  const Shape &x = b.input(0)->type.shape, &w = b.input(1)->type.shape, &y = b.output(0)->type.shape;
  const std::vector<int64_t> strides = a.Ints("strides"), dilations = a.Ints("dilations"),
                             pads = a.Ints("pads");
  Deform d{x[0], x[1], w[0], a.Int("group", 1), a.Int("offset_group", 1)};
  for (int i = 0; i < 2; ++i) {
    d.kernel[i] = w[2 + i], d.out[i] = y[2 + i], d.in[i] = x[2 + i];
    d.strides[i] = strides.empty() ? 1 : strides[i];
    d.dilations[i] = dilations.empty() ? 1 : dilations[i];
    d.before[i] = pads.empty() ? 0 : pads[i];
  }
  return d;
}

// Where the taps of all windows would read along an axis without offsets: float [1, 1, taps, windows].
Value* Regular(GradientBuilder& b, const Deform& d, int axis, DType dtype) {
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < d.taps(); ++tap) {
    for (int64_t window = 0; window < d.windows(); ++window) {
      const int64_t at_tap = axis == 0 ? tap / d.kernel[1] : tap % d.kernel[1];
      const int64_t at_window = axis == 0 ? window / d.out[1] : window % d.out[1];
      places.push_back(at_window * d.strides[axis] - d.before[axis] + at_tap * d.dilations[axis]);
    }
  }
  Attributes to;
  to.Set("to", static_cast<int64_t>(dtype));
  return b.Emit("Cast", {b.Reshape(b.Ints(places), {1, 1, d.taps(), d.windows()})}, std::move(to));
}

Value* Product(GradientBuilder& b, Value* left, bool transpose_left, Value* right, bool transpose_right) {
  Attributes attributes;
  attributes.Set("trans_a", int64_t{transpose_left});
  attributes.Set("trans_b", int64_t{transpose_right});
  return b.Emit("FusedMatMul", {left, right}, std::move(attributes), kPipecDomain);
}

Gradients DeformConv(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  Gradients gradients(wanted.size());
  const auto want = [&](int i) { return i < wanted.size() && wanted[i]; };
  const Deform d = Read(b);
  const DType dtype = dy[0]->type.dtype;
  if (want(3)) gradients[3] = b.Reshape(b.SumToShape(dy[0], {1, d.filters, 1, 1}), {d.filters});
  if (!want(0) && !want(1) && !want(2) && !want(4)) return gradients;

  // Channels that share offsets are the rows of a block.
  Sampling sampling{{}, d.samples * d.offset_groups, d.channels / d.offset_groups, d.taps() * d.windows()};
  Value* offset = b.Reshape(b.input(2), {d.samples, d.offset_groups, d.taps(), 2, d.windows()});
  Attributes axis3;
  axis3.Set("axis", int64_t{3});
  for (int axis = 0; axis < 2; ++axis) {
    Value* moved =
        b.Emit("Add", {b.Emit("Gather", {offset, b.Int(axis)}, axis3), Regular(b, d, axis, dtype)});
    Value* at = b.Reshape(moved, {sampling.blocks, sampling.points});
    if (!at) return gradients;
    sampling.axes.push_back(LinearTaps(b, at, d.in[axis]));
  }
  const Shape by_group = {d.samples, d.groups, d.filters / d.groups, d.windows()};
  const Shape of_blocks = {sampling.blocks, sampling.rows, sampling.points};
  const int64_t depth = d.channels / d.groups * d.taps();
  Value* d_windows = b.Reshape(dy[0], by_group);
  Value* places = b.Reshape(b.input(0), {sampling.blocks, sampling.rows, d.in[0] * d.in[1]});
  Value* mask = b.input(4) ? b.Reshape(b.input(4), {sampling.blocks, 1, sampling.points}) : nullptr;

  Value* d_samples = nullptr;
  if (want(0) || want(2) || want(4)) {
    Value* w = b.Reshape(b.input(1), {1, d.groups, d.filters / d.groups, depth});
    d_samples = b.Reshape(Product(b, w, true, d_windows, false), of_blocks);
  }
  Value* d_read = d_samples && mask ? b.Emit("Mul", {d_samples, mask}) : d_samples;
  if (want(0)) gradients[0] = b.Reshape(sampling.Spread(b, d_read), b.input(0)->type.shape);
  if (want(2)) {
    std::vector<Value*> parts;
    for (int axis = 0; axis < 2; ++axis) {
      Value* part = sampling.OfCoordinate(b, places, d_read, axis);
      parts.push_back(b.Reshape(part, {d.samples, d.offset_groups, d.taps(), 1, d.windows()}));
    }
    gradients[2] = b.Reshape(b.Emit("Concat", std::move(parts), axis3), b.input(2)->type.shape);
  }
  if (!want(1) && !want(4)) return gradients;
  Value* read = sampling.Read(b, places);
  if (want(4)) {
    Attributes dropped;
    dropped.Set("keepdims", int64_t{0});
    Value* sum = b.Emit("ReduceSum", {b.Emit("Mul", {d_samples, read}), b.Ints({1})}, std::move(dropped));
    gradients[4] = b.Reshape(sum, b.input(4)->type.shape);
  }
  if (want(1)) {
    Value* samples =
        b.Reshape(mask ? b.Emit("Mul", {read, mask}) : read, {d.samples, d.groups, depth, d.windows()});
    Value* each = Product(b, d_windows, false, samples, true);
    gradients[1] =
        b.Reshape(b.SumToShape(each, {1, d.groups, d.filters / d.groups, depth}), b.input(1)->type.shape);
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"DeformConv", "", DeformConv}};

}  // namespace

absl::Span<const GradientRuleEntry> DeformConvRules() { return kRules; }

}  // namespace pipec
