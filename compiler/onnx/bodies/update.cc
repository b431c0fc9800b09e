// Sums over microbatches, norms, optimizers and messages.
#include <limits>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;

constexpr DType kDouble = DType::kFloat64;

// (sum, x) -> (sum'); 0 stands for the sum before the first microbatch.
void Accumulate(Body& b) {
  const DType dtype = b.type(0).dtype;
  b.Result(0, b.Add(b.in(0), b.type(1).dtype == dtype ? b.in(1) : b.Cast(b.in(1), dtype)));
}

void SquaredNorm(Body& b) {
  b.Result(0, b.Op("ReduceSumSquare", {b.Cast(b.in(0), kDouble)}, {{"keepdims", int64_t{0}}}));
}

Name Vector(Body& b, int first) {
  Body::Names parts;
  for (int i = first; i < static_cast<int>(b.node().inputs().size()); ++i) {
    if (b.has(i)) parts.push_back(b.Reshape(b.in(i), {-1}));
  }
  return b.Op("Concat", std::move(parts), {{"axis", int64_t{0}}});
}

void Pack(Body& b) { b.Result(0, Vector(b, 0)); }

// loss_scale / divisor
Name LossScaleOf(Body& b) {
  return b.Div("loss_scale", b.Scalar(kDouble, b.attributes().Float("divisor", 1)));
}

// () -> (y)
void LossScale(Body& b) { b.Result(0, b.Cast(LossScaleOf(b), DType::kFloat32)); }

// (loss_sum, loss_weight?, norms...) -> (scale, gradient_norm, loss)
void GradientScale(Body& b) {
  const Name weight = b.has(1) ? b.in(1) : b.Scalar(kDouble, b.attributes().Float("weight", 1));
  Name norms = Vector(b, 2);
  if (b.attributes().Has("order")) norms = b.Op("Gather", {norms, b.Ints(b.attributes().Ints("order"))});
  const Name root = b.Op("Sqrt", {b.Op("ReduceSum", {norms}, {{"keepdims", int64_t{0}}})});
  const Name one = b.Scalar(kDouble, 1), loss_scale = b.attributes().Has("divisor") ? LossScaleOf(b) : one;
  const Name norm = b.Div(b.Div(root, b.Op("Abs", {weight})), loss_scale);
  const Name clip = b.Op("Min", {one, b.Div("clip_norm", b.Add(norm, b.Scalar(kDouble, 1e-6)))});
  const Name is_on = b.Op("Greater", {"clip_norm", b.Scalar(kDouble, 0)});
  b.Result(0, b.Mul(b.Div(b.Div(one, weight), loss_scale), b.Where(is_on, clip, one)));
  b.Result(1, norm);
  b.Result(2, b.Div(b.in(0), weight));
}

// The gradient that an optimizer sees: scaled, then clipped by value.
Name Gradient(Body& b, const Name& scale) {
  const DType dtype = b.type(1).dtype;
  const Name is_on = b.Op("Greater", {"clip_value", b.Scalar(kDouble, 0)});
  const Name infinity = b.Scalar(kDouble, std::numeric_limits<double>::infinity());
  const Name limit = b.Cast(b.Where(is_on, "clip_value", infinity), dtype);
  const Name scaled = b.Mul(b.Cast(scale, dtype), b.in(1));
  return b.Op("Min", {b.Op("Max", {scaled, b.Op("Neg", {limit})}), limit});
}

// A run-time scalar in the parameter's type.
Name Scalar(Body& b, const Name& name) { return b.Cast(name, b.type(0).dtype); }

// g + weight decay * p
Name Decayed(Body& b, Name g) { return b.Add(std::move(g), b.Mul(Scalar(b, "weight_decay"), b.in(0))); }

// (p, g, scale) -> (p')
void Sgd(Body& b) { b.Result(0, b.Sub(b.in(0), b.Mul(Scalar(b, "lr"), Decayed(b, Gradient(b, b.in(2)))))); }

// (p, g, v, scale) -> (p', v')
void Momentum(Body& b) {
  const Name g = Decayed(b, Gradient(b, b.in(3))), momentum = Scalar(b, "momentum");
  const Name v = b.Add(b.Mul(momentum, b.in(2)), g);
  const Name step = b.attributes().Int("nesterov") != 0 ? b.Add(g, b.Mul(momentum, v)) : v;
  b.Result(0, b.Sub(b.in(0), b.Mul(Scalar(b, "lr"), step)));
  b.Result(1, v);
}

// (p, g, m, v, scale) -> (p', m', v')
void Adam(Body& b) {
  const DType dtype = b.type(0).dtype;
  const bool decoupled = b.attributes().Int("decoupled") != 0;
  const Name one = b.Scalar(kDouble, 1), steps = b.Add(b.Cast("updates", kDouble), one);
  Name g = Gradient(b, b.in(4)), p = b.in(0);
  if (decoupled) {
    p = b.Mul(p, b.Cast(b.Sub(one, b.Mul("lr", "weight_decay")), dtype));
  } else {
    g = Decayed(b, g);
  }
  const Name m = b.Add(b.in(2), b.Mul(b.Cast(b.Sub(one, "beta1"), dtype), b.Sub(g, b.in(2))));
  const Name from_square = b.Cast(b.Sub(one, "beta2"), dtype);
  const Name v = b.Add(b.Mul(Scalar(b, "beta2"), b.in(3)), b.Mul(b.Mul(from_square, g), g));
  const auto correction = [&](const Name& beta) { return b.Sub(one, b.Op("Pow", {beta, steps})); };
  const Name size = b.Cast(b.Div("lr", correction("beta1")), dtype);
  const Name root = b.Cast(b.Op("Sqrt", {correction("beta2")}), dtype);
  const Name divisor = b.Add(b.Div(b.Op("Sqrt", {v}), root), Scalar(b, "eps"));
  b.Result(0, b.Sub(p, b.Mul(size, b.Div(m, divisor))));
  b.Result(1, m);
  b.Result(2, v);
}

// (p, g, h, scale) -> (p', h')
void Adagrad(Body& b) {
  const Name g = Decayed(b, Gradient(b, b.in(3)));
  const Name h = b.Add(b.in(2), b.Mul(g, g));
  const Name divisor = b.Add(b.Op("Sqrt", {h}), Scalar(b, "eps"));
  b.Result(0, b.Sub(b.in(0), b.Mul(Scalar(b, "lr"), b.Div(g, divisor))));
  b.Result(1, h);
}

// What arrives is what was sent.
void Message(Body& b) {
  for (int i = 0; i < static_cast<int>(b.node().inputs().size()); ++i) b.Result(i, b.in(i));
}

const BodyRow kRows[] = {
    {"Accumulate", "sum x", "", Accumulate},
    {"SquaredNorm", "g", "", SquaredNorm},
    {"GradientScale", "loss_sum loss_weight norm*", "clip_norm loss_scale", GradientScale},
    {"LossScale", "", "loss_scale", LossScale},
    {"Pack", "x*", "", Pack},
    {"Sgd", "p g scale", "lr weight_decay clip_value", Sgd},
    {"Momentum", "p g v scale", "lr weight_decay momentum clip_value", Momentum},
    {"Adam", "p g m v scale", "lr weight_decay beta1 beta2 eps clip_value updates", Adam},
    {"Adagrad", "p g h scale", "lr weight_decay eps clip_value", Adagrad},
    {"Message", "x*", "", Message},
};

}  // namespace

absl::Span<const BodyRow> UpdateBodies() { return kRows; }

}  // namespace pipec
