// Softmax, LayerNormalization and BatchNormalization: their training forms and gradients, as
// compiler/ops/README.md says.
#include <algorithm>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;
using Axes = std::vector<int64_t>;

int64_t AxisOf(const Body& b, int operand, int64_t otherwise) {
  const int64_t axis = b.attributes().Int("axis", otherwise);
  return axis < 0 ? axis + b.rank(operand) : axis;
}

Axes From(int64_t first, int64_t end) {
  Axes axes;
  for (int64_t i = first; i < end; ++i) axes.push_back(i);
  return axes;
}

void SoftmaxGrad(Body& b) {
  const Name inner = b.Sum(b.Mul(b.in(0), b.in(1)), {AxisOf(b, 1, -1)}, true);
  b.Result(0, b.Mul(b.in(1), b.Sub(b.in(0), inner)));
}

void LogSoftmaxGrad(Body& b) {
  const Name sum = b.Sum(b.in(0), {AxisOf(b, 1, -1)}, true);
  b.Result(0, b.Sub(b.in(0), b.Mul(b.Op("Exp", {b.in(1)}), sum)));
}

// (X, scale, bias?) -> (Y, mean?, inv_std_dev?)
void LayerNormalization(Body& b) {
  const int results = static_cast<int>(b.node().outputs().size());
  const Body::Names made =
      b.Ops("LayerNormalization", {b.in(0), b.in(1), b.in(2)},
            {{"axis", b.attributes().Int("axis", -1)}, {"epsilon", b.attributes().Float("epsilon", 1e-5f)}},
            results);
  for (int k = 0; k < results; ++k) b.Result(k, made[k]);
}

// (dY, X, scale, mean, inv_std_dev) -> (dX)
void LayerNormalizationInputGrad(Body& b) {
  const Axes axes = From(AxisOf(b, 1, -1), b.rank(1));
  const Name inverse = b.in(4), x = b.Mul(b.Sub(b.in(1), b.in(3)), inverse), g = b.Mul(b.in(0), b.in(2));
  const Name along = b.Mul(x, b.Mean(b.Mul(g, x), axes, true));
  b.Result(0, b.Mul(inverse, b.Sub(b.Sub(g, b.Mean(g, axes, true)), along)));
}

// (dY, X, mean, inv_std_dev) -> (dScale, dBias?)
void LayerNormalizationWeightGrad(Body& b) {
  const Axes axes = From(0, AxisOf(b, 1, -1));
  const Name x = b.Mul(b.Sub(b.in(1), b.in(2)), b.in(3));
  b.Result(0, b.Sum(b.Mul(b.in(0), x), axes, false));
  if (b.node().output(1)) b.Result(1, b.Sum(b.in(0), axes, false));
}

// All axes of X but the channel's, axis 1.
Axes BesideChannel(const Body& b, int x) {
  Axes axes = From(0, b.rank(x));
  axes.erase(axes.begin() + 1);
  return axes;
}

// A value per channel, broadcast over X.
Name PerChannel(Body& b, Name value, int x) {
  Axes shape(b.rank(x), 1);
  shape[1] = -1;
  return b.Reshape(std::move(value), shape);
}

// 1 / sqrt(variance + epsilon), per channel
Name InverseDeviation(Body& b, Name variance, DType dtype) {
  const Name epsilon = b.Scalar(dtype, b.attributes().Float("epsilon", 1e-5f));
  return b.Div(b.Scalar(dtype, 1), b.Op("Sqrt", {b.Add(std::move(variance), epsilon)}));
}

// (X, scale, bias, running_mean, running_variance) -> (Y, mean, variance), in training
void TrainingBatchNormalization(Body& b) {
  const Axes axes = BesideChannel(b, 0);
  const DType dtype = b.type(0).dtype;
  const Name mean = b.Mean(b.in(0), axes, false);
  const Name centred = b.Sub(b.in(0), PerChannel(b, mean, 0));
  const Name variance = b.Mean(b.Mul(centred, centred), axes, false);
  const Name factor = b.Mul(InverseDeviation(b, variance, dtype), b.in(1));
  b.Result(0, b.Add(b.Mul(centred, PerChannel(b, factor, 0)), PerChannel(b, b.in(2), 0)));
  b.Result(1, mean);
  b.Result(2, variance);
}

// (average, x) -> (average'), in training
void RunningAverage(Body& b) {
  const DType dtype = b.type(0).dtype;
  const float momentum = b.attributes().Float("momentum", 0.9f);
  b.Result(
      0, b.Add(b.Mul(b.in(0), b.Scalar(dtype, momentum)), b.Mul(b.in(1), b.Scalar(dtype, 1.0f - momentum))));
}

// (dY, X, scale, mean, variance) -> (dX)
void BatchNormalizationInputGrad(Body& b) {
  const Axes axes = BesideChannel(b, 1);
  const Name inverse = InverseDeviation(b, b.in(4), b.type(0).dtype);
  const Name x = b.Mul(b.Sub(b.in(1), PerChannel(b, b.in(3), 1)), PerChannel(b, inverse, 1));
  const Name along = b.Mul(x, b.Mean(b.Mul(b.in(0), x), axes, true));
  const Name inner = b.Sub(b.Sub(b.in(0), b.Mean(b.in(0), axes, true)), along);
  b.Result(0, b.Mul(PerChannel(b, b.Mul(b.in(2), inverse), 1), inner));
}

// (dY, X, mean, variance) -> (dScale, dBias?)
void BatchNormalizationWeightGrad(Body& b) {
  const Axes axes = BesideChannel(b, 1);
  const Name inverse = InverseDeviation(b, b.in(3), b.type(0).dtype);
  const Name x = b.Mul(b.Sub(b.in(1), PerChannel(b, b.in(2), 1)), PerChannel(b, inverse, 1));
  b.Result(0, b.Sum(b.Mul(b.in(0), x), axes, false));
  if (b.node().output(1)) b.Result(1, b.Sum(b.in(0), axes, false));
}

const BodyRow kRows[] = {
    {"SoftmaxGrad", "dY Y", "", SoftmaxGrad},
    {"LogSoftmaxGrad", "dY Y", "", LogSoftmaxGrad},
    {"LayerNormalization", "X scale bias", "", LayerNormalization},
    {"LayerNormalizationInputGrad", "dY X scale mean inv_std_dev", "", LayerNormalizationInputGrad},
    {"LayerNormalizationWeightGrad", "dY X mean inv_std_dev", "", LayerNormalizationWeightGrad},
    {"TrainingBatchNormalization", "X scale bias running_mean running_variance", "",
     TrainingBatchNormalization},
    {"RunningAverage", "average x", "", RunningAverage},
    {"BatchNormalizationInputGrad", "dY X scale mean variance", "", BatchNormalizationInputGrad},
    {"BatchNormalizationWeightGrad", "dY X mean variance", "", BatchNormalizationWeightGrad},
};

}  // namespace

absl::Span<const BodyRow> NormalizationBodies() { return kRows; }

}  // namespace pipec
