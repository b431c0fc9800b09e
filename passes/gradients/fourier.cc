// Fourier transforms. They are linear, with real and imaginary parts as numbers of their own: dX is the adjoint
// of the transform, the one with the other sign in the exponent.
#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// The first `size` entries along an axis, zeros behind what is there.
Value* Fit(GradientBuilder& b, Value* x, int64_t axis, int64_t size) {
  if (!x || x->type.shape[axis] == size) return x;
  if (x->type.shape[axis] > size) return b.Emit("Slice", {x, b.Ints({0}), b.Ints({size}), b.Ints({axis})});
  return b.Emit("Pad", {x, b.Ints({0, size - x->type.shape[axis]}), nullptr, b.Ints({axis})});
}

// The transform of x (..., 1 or 2) along an axis, divided by nothing: the sum over j of x_j exp(-+ 2 pi i j k / n).
Value* Transform(GradientBuilder& b, Value* x, int64_t axis, int64_t n, bool inverse, bool onesided) {
  Attributes attributes;
  attributes.Set("inverse", int64_t{inverse});
  attributes.Set("onesided", int64_t{onesided});
  Value* y = b.Emit("DFT", {x, b.Int(n), b.Int(axis)}, std::move(attributes));
  return inverse && y ? b.Emit("Mul", {y, b.Scalar(x->type.dtype, static_cast<double>(n))}) : y;
}

// Of the transform of lines of n places with `parts` numbers each, not the inverse; onesided or not. Bins that were
// left out have gradient zero.
Value* AdjointOfForward(GradientBuilder& b, Value* dy, int64_t axis, int64_t n, int64_t parts) {
  Value* dx = Transform(b, Fit(b, dy, axis, n), axis, n, /*inverse=*/true, /*onesided=*/false);
  return dx ? Fit(b, dx, static_cast<int64_t>(dx->type.shape.size()) - 1, parts) : nullptr;
}

// Of the inverse that makes a real line out of half of its bins: the other half is the conjugate, so that all bins but
// those that are their own conjugate count twice.
Value* AdjointOfHalf(GradientBuilder& b, Value* dy, int64_t axis, int64_t n) {
  Value* dx = Transform(b, dy, axis, n, /*inverse=*/false, /*onesided=*/true);
  if (!dx) return nullptr;
  const int64_t bins = dx->type.shape[axis];
  Shape shape(dx->type.shape.size(), 1);
  shape[axis] = bins;
  std::vector<float> twice(bins, 2);
  twice[0] = 1;
  if (n % 2 == 0) twice.back() = 1;
  Attributes to;
  to.Set("to", static_cast<int64_t>(dy->type.dtype));
  return b.Emit("Mul", {dx, b.Reshape(b.Emit("Cast", {b.Floats(twice)}, std::move(to)), shape)});
}

Gradients Dft(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const Shape& x = b.input(0)->type.shape;
  const bool inverse = b.forward()->attributes.Int("inverse"), half = b.forward()->attributes.Int("onesided");
  int64_t axis = b.input(2) ? b.ConstantInts(b.input(2)).at(0) : -2;
  if (!b.status().ok()) return gradients;
  if (axis < 0) axis += x.size();
  int64_t n = half && inverse ? 2 * (x[axis] - 1) : x[axis];
  if (b.input(1)) n = b.ConstantInts(b.input(1)).at(0);
  if (!b.status().ok()) return gradients;
  Value* dx = nullptr;
  if (!inverse) {
    dx = AdjointOfForward(b, dy[0], axis, n, x.back());
  } else {
    dx = half ? AdjointOfHalf(b, dy[0], axis, n) : Transform(b, dy[0], axis, n, false, false);
    dx = dx ? b.Emit("Mul", {dx, b.Scalar(dx->type.dtype, 1.0 / static_cast<double>(n))}) : nullptr;
    dx = dx ? Fit(b, dx, static_cast<int64_t>(x.size()) - 1, x.back()) : nullptr;
  }
  gradients[0] = Fit(b, dx, axis, x[axis]);
  return gradients;
}

// A frame is signal[start : start + n] * window, start = frame * step.
Gradients Stft(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const Shape& signal = b.input(0)->type.shape;
  const int64_t step = b.ConstantInts(b.input(1)).at(0), frames = dy[0]->type.shape[1], parts = signal[2];
  int64_t n = b.input(2) ? b.input(2)->type.elements() : signal[1];
  if (b.input(3)) n = b.ConstantInts(b.input(3)).at(0);
  if (!b.status().ok()) return gradients;
  Value* d_frames = AdjointOfForward(b, dy[0], 2, n, parts);
  std::vector<int64_t> at;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t k = 0; k < n; ++k) at.push_back(frame * step + k);
  }
  Value* places = b.Reshape(b.Ints(at), {frames, n});
  Attributes along;
  along.Set("axis", int64_t{1});
  if (wanted[0]) {
    Attributes attributes = along;
    attributes.Set("shape", std::vector<int64_t>(signal.begin(), signal.end()));
    Value* weighted = b.input(2) ? b.Emit("Mul", {d_frames, b.Reshape(b.input(2), {n, 1})}) : d_frames;
    gradients[0] = b.Emit("GatherGrad", {weighted, places}, std::move(attributes), kPipecDomain);
  }
  if (wanted.size() > 2 && wanted[2]) {
    Attributes dropped;
    dropped.Set("keepdims", int64_t{0});
    Value* product = b.Emit("Mul", {d_frames, b.Emit("Gather", {b.input(0), places}, along)});
    gradients[2] = b.Emit("ReduceSum", {product, b.Ints({0, 1, 3})}, std::move(dropped));
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"DFT", "", Dft}, {"STFT", "", Stft}};

}  // namespace

absl::Span<const GradientRuleEntry> FourierRules() { return kRules; }

}  // namespace pipec
