// Softmax, LayerNormalization and BatchNormalization, each one or two helper ops (compiler/ops/README.md has the
// formulas), and InstanceNormalization.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Attributes Axis(GradientBuilder& b) {
  Attributes attributes;
  attributes.Set("axis", b.forward()->attributes.Int("axis", -1));
  return attributes;
}

Gradients Softmax(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("SoftmaxGrad", {dy[0], b.output(0)}, Axis(b), kPipecDomain)};
}

Gradients LogSoftmax(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("LogSoftmaxGrad", {dy[0], b.output(0)}, Axis(b), kPipecDomain)};
}

// What the outputs Mean and InvStdDev, r, hand to X: (dMean - dr * r^3 * (x - mean)) / n.
Value* OfStatistics(GradientBuilder& b, Value* d_mean, Value* d_inverse, int64_t n) {
  Value* share = d_mean;
  if (d_inverse) {
    Value *mean = b.output(1), *inverse = b.output(2);
    Value* cube = b.Emit("Mul", {b.Emit("Mul", {inverse, inverse}), inverse});
    Value* term = b.Emit("Mul", {b.Emit("Mul", {d_inverse, cube}), b.Emit("Sub", {b.input(0), mean})});
    share = d_mean ? b.Emit("Sub", {d_mean, term}) : b.Emit("Neg", {term});
  }
  share = b.Emit("Mul", {share, b.Scalar(b.input(0)->type.dtype, 1 / static_cast<double>(n))});
  return b.Emit("Expand", {share, b.Ints(b.input(0)->type.shape)});
}

// Needs the statistics of the forward pass, which exporters leave out. Scale and bias may have fewer axes
// than the normalised part of X, or axes of size 1.
Gradients LayerNormalization(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  Value* const d_mean = dy.size() > 1 ? dy[1] : nullptr;
  Value* const d_inverse = dy.size() > 2 ? dy[2] : nullptr;
  if (wanted[0] || wanted[1]) b.RequireOutput(2);
  Value* mean = b.output(1);
  Value* inv_std_dev = b.output(2);
  if (!mean || !inv_std_dev) {
    if (wanted[0] || wanted[1]) b.Fail(absl::UnimplementedError("one of Mean and InvStdDev is absent"));
  }
  const Shape& shape = b.input(0)->type.shape;
  const int64_t axis = b.forward()->attributes.Int("axis", -1);
  const auto normalized = absl::MakeSpan(shape).subspan(axis < 0 ? axis + shape.size() : axis);
  if (wanted[0] && dy[0]) {
    Value* scale = b.input(1);
    if (absl::Span<const int64_t>(scale->type.shape) != normalized)
      scale = b.Emit("Expand", {scale, b.Ints(normalized)});
    gradients[0] = b.Emit("LayerNormalizationInputGrad", {dy[0], b.input(0), scale, mean, inv_std_dev},
                          Axis(b), kPipecDomain);
  }
  if (wanted[0] && (d_mean || d_inverse)) {
    Value* rest = OfStatistics(b, d_mean, d_inverse, NumElements(normalized));
    gradients[0] = gradients[0] ? b.Emit("Add", {gradients[0], rest}) : rest;
  }
  if (!dy[0]) return gradients;
  const bool bias = wanted.size() > 2 && wanted[2];
  if (wanted[1]) {
    const Gradients both = b.EmitAll("LayerNormalizationWeightGrad", {dy[0], b.input(0), mean, inv_std_dev},
                                     Axis(b), kPipecDomain, bias ? 2 : 1);
    gradients[1] = b.SumToShape(both[0], b.input(1)->type.shape);
    if (bias) gradients[2] = b.SumToShape(both[1], b.input(2)->type.shape);
  } else if (bias) {
    gradients[2] = b.SumToShape(dy[0], b.input(2)->type.shape);
  }
  return gradients;
}

Attributes Epsilon(GradientBuilder& b) {
  Attributes attributes;
  attributes.Set("epsilon", b.forward()->attributes.Float("epsilon", 1e-5f));
  return attributes;
}

// Of scale and bias, operands 1 and 2, from the statistics that the forward pass divided by.
void BatchNormalizationWeights(GradientBuilder& b, Value* dy, Value* mean, Value* variance,
                               const Wanted& wanted, Gradients& gradients) {
  if (!wanted[1] && !wanted[2]) return;
  const Gradients both = b.EmitAll("BatchNormalizationWeightGrad", {dy, b.input(0), mean, variance},
                                   Epsilon(b), kPipecDomain, wanted[2] ? 2 : 1);
  for (int i = 1; i < 3; ++i) {
    if (wanted[i]) gradients[i] = both[i - 1];
  }
}

// One value a channel against X's axes.
Value* PerChannel(GradientBuilder& b, Value* value) {
  Shape shape(b.input(0)->type.shape.size(), 1);
  if (shape.size() > 1) shape[1] = value->type.elements();
  return b.Reshape(value, shape);
}

// Inference form: mean and variance are running averages, no functions of X, and nothing that learns, as in
// torch.nn.BatchNorm2d, where they are buffers. Training form was lowered before (lower-batch-normalization).
Gradients BatchNormalization(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  if (b.forward()->attributes.Int("training_mode") != 0) {
    b.Fail(absl::UnimplementedError("training_mode=1 that was not lowered"));
    return gradients;
  }
  if (wanted[0]) {
    const DType dtype = dy[0]->type.dtype;
    const float epsilon = b.forward()->attributes.Float("epsilon", 1e-5f);
    Value* deviation = b.Emit("Sqrt", {b.Emit("Add", {b.input(4), b.Scalar(dtype, epsilon)})});
    Value* factor = b.Emit("Div", {b.input(1), deviation});
    if (factor) gradients[0] = b.Emit("Mul", {dy[0], PerChannel(b, factor)});
  }
  BatchNormalizationWeights(b, dy[0], b.input(3), b.input(4), wanted, gradients);
  return gradients;
}

Gradients TrainingBatchNormalization(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  if (!dy[0]) return gradients;
  if (wanted[0]) {
    gradients[0] =
        b.Emit("BatchNormalizationInputGrad", {dy[0], b.input(0), b.input(1), b.output(1), b.output(2)},
               Epsilon(b), kPipecDomain);
  }
  BatchNormalizationWeights(b, dy[0], b.output(1), b.output(2), wanted, gradients);
  return gradients;
}

// The statistics are those of one sample's channel: dX = inverse * (g - mean(g) - x^ * mean(g * x^)) with
// g = dY * scale, x^ = (X - mean) * inverse.
Gradients InstanceNormalization(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const int rank = b.input(0)->type.shape.size();
  std::vector<int64_t> places, others = {0};
  for (int i = 2; i < rank; ++i) places.push_back(i);
  others.insert(others.end(), places.begin(), places.end());
  const auto mean_of = [&](Value* x) { return b.Emit("ReduceMean", {x, b.Ints(places)}); };
  Attributes dropped;
  dropped.Set("keepdims", int64_t{0});
  if (wanted[2]) gradients[2] = b.Emit("ReduceSum", {dy[0], b.Ints(others)}, dropped);
  if (!wanted[0] && !wanted[1]) return gradients;
  const DType dtype = dy[0]->type.dtype;
  Value* centred = b.Emit("Sub", {b.input(0), mean_of(b.input(0))});
  Value* variance = mean_of(b.Emit("Mul", {centred, centred}));
  Value* epsilon = b.Scalar(dtype, b.forward()->attributes.Float("epsilon", 1e-5f));
  Value* inverse = b.Emit("Reciprocal", {b.Emit("Sqrt", {b.Emit("Add", {variance, epsilon})})});
  Value* normalized = b.Emit("Mul", {centred, inverse});
  if (wanted[1])
    gradients[1] = b.Emit("ReduceSum", {b.Emit("Mul", {dy[0], normalized}), b.Ints(others)}, dropped);
  if (!wanted[0]) return gradients;
  Value* g = b.Emit("Mul", {dy[0], PerChannel(b, b.input(1))});
  Value* along = b.Emit("Mul", {normalized, mean_of(b.Emit("Mul", {g, normalized}))});
  Value* rest = b.Emit("Sub", {b.Emit("Sub", {g, mean_of(g)}), along});
  gradients[0] = b.Emit("Mul", {rest, inverse});
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"Softmax", "", Softmax},
    {"LogSoftmax", "", LogSoftmax},
    {"LayerNormalization", "", LayerNormalization},
    {"BatchNormalization", "", BatchNormalization},
    {"TrainingBatchNormalization", kPipecDomain, TrainingBatchNormalization},
    {"InstanceNormalization", "", InstanceNormalization},
};

}  // namespace

absl::Span<const GradientRuleEntry> NormalizationRules() { return kRules; }

}  // namespace pipec
