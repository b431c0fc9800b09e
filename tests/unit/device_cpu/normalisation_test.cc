#include <cmath>
#include <limits>

#include "kernel_call.h"

namespace pipec {
namespace {

struct Rows {
  int64_t outer, length, inner;
};

Rows Along(const Shape& shape, int64_t axis) {
  Rows rows{1, shape[axis], 1};
  for (int64_t i = 0; i < axis; ++i) rows.outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) rows.inner *= shape[i];
  return rows;
}

// f maps one row to one row.
std::vector<double> PerRow(const std::vector<double>& x, const Rows& rows,
                           const std::function<std::vector<double>(const std::vector<double>&)>& f) {
  std::vector<double> y(x.size());
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t i = 0; i < rows.inner; ++i) {
      std::vector<double> row;
      for (int64_t l = 0; l < rows.length; ++l) row.push_back(x[(o * rows.length + l) * rows.inner + i]);
      row = f(row);
      for (int64_t l = 0; l < rows.length; ++l) y[(o * rows.length + l) * rows.inner + i] = row[l];
    }
  }
  return y;
}

std::vector<double> LogSoftmaxRow(std::vector<double> x) {
  long double sum = 0;
  for (double value : x) sum += std::exp(static_cast<long double>(value));
  for (double& value : x) value = static_cast<double>(value - std::log(sum));
  return x;
}

std::vector<double> SoftmaxRow(std::vector<double> x) {
  x = LogSoftmaxRow(std::move(x));
  for (double& value : x) value = std::exp(value);
  return x;
}

std::vector<double> Times(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> product(a.size());
  for (size_t i = 0; i < a.size(); ++i) product[i] = a[i] * b[i];
  return product;
}

double Total(const std::vector<double>& x) {
  double total = 0;
  for (double value : x) total += value;
  return total;
}

TEST(Softmax, AlongAnyAxisInPlaceOnAnyThreads) {
  for (const Shape& shape : std::vector<Shape>{{1}, {3, 1}, {5, 33}, {2, 3, 100}, {2, 65, 70}, {4, 3000}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      const Rows rows = Along(shape, axis);
      for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
        for (bool log : {false, true}) {
          const Tensor x = Random(dtype, shape, 1, -5, 5);
          KernelCall call(log ? "LogSoftmax" : "Softmax", "");
          call.In(x).Out(dtype, shape).Attr("axis", axis);
          const std::string bytes = call.Bytes();
          ExpectNear(call.Get(), PerRow(Values(x), rows, log ? LogSoftmaxRow : SoftmaxRow),
                     dtype == DType::kFloat32 ? 2e-6 : 1e-13, ToString(shape));
          EXPECT_EQ(bytes, call.Threads(3).Bytes());
          EXPECT_EQ(bytes, call.At(0).Bytes());
          EXPECT_EQ(bytes, call.Misalign(8).Bytes());
        }
      }
    }
  }
}

TEST(Softmax, KeepsMaskedAndLargeValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Make(DType::kFloat32, {2, 3}, {-inf, 0, 0, 1e30, -1e30, 1e30});
  EXPECT_THAT(KernelCall("Softmax", "").In(x).Out(DType::kFloat32, {2, 3}).Get(),
              testing::ElementsAre(0, 0.5, 0.5, 0.5, 0, 0.5));
}

TEST(SoftmaxGrad, IsTheDerivative) {
  for (const Shape& shape : std::vector<Shape>{{40}, {2, 3, 5}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      const Rows rows = Along(shape, axis);
      for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
        for (bool log : {false, true}) {
          const auto forward = [&](const std::vector<double>& x) {
            return PerRow(x, rows, log ? LogSoftmaxRow : SoftmaxRow);
          };
          const std::vector<double> x = RandomValues(NumElements(shape), 1);
          const Tensor dy = Random(dtype, shape, 2), y = Make(dtype, shape, forward(x));
          KernelCall call(log ? "LogSoftmaxGrad" : "SoftmaxGrad", kHelpers);
          call.In(dy).In(y).Out(dtype, shape).Attr("axis", axis);
          const std::vector<double> wanted = NumericGradient(
              [&](const std::vector<double>& at) { return Total(Times(forward(at), Values(dy))); }, x);
          ExpectNear(call.Get(), wanted, dtype == DType::kFloat32 ? 5e-6 : 1e-8);
          const std::string bytes = call.Bytes();
          EXPECT_EQ(bytes, call.At(0).Threads(2).Bytes());
          EXPECT_EQ(bytes, call.At(1).Bytes());
        }
      }
    }
  }
}

class LayerNormalization {
 public:
  LayerNormalization(Shape shape, int64_t axis) : shape_(shape), axis_(axis) {
    for (size_t i = 0; i < shape.size(); ++i) {
      (static_cast<int64_t>(i) < axis ? rows : length) *= shape[i];
      if (static_cast<int64_t>(i) >= axis) row_shape.push_back(shape[i]);
      statistics_shape.push_back(static_cast<int64_t>(i) < axis ? shape[i] : 1);
    }
  }

  std::vector<double> Forward(const std::vector<double>& x, const std::vector<double>& scale,
                              const std::vector<double>& bias) {
    std::vector<double> y(x.size());
    mean.clear();
    inverse.clear();
    for (int64_t r = 0; r < rows; ++r) {
      double m = 0, v = 0;
      for (int64_t i = 0; i < length; ++i) m += x[r * length + i] / length;
      for (int64_t i = 0; i < length; ++i) v += std::pow(x[r * length + i] - m, 2) / length;
      mean.push_back(m);
      inverse.push_back(1 / std::sqrt(v + 0.25));
      for (int64_t i = 0; i < length; ++i) {
        y[r * length + i] = (x[r * length + i] - m) * inverse.back() * scale[i] + bias[i];
      }
    }
    return y;
  }

  const Shape shape_;
  const int64_t axis_;
  int64_t rows = 1, length = 1;
  Shape row_shape, statistics_shape;
  std::vector<double> mean, inverse;
};

TEST(LayerNormalization, NormalisesRowsFromAnyAxis) {
  for (const Shape& shape : std::vector<Shape>{{2, 3, 5}, {3, 70}, {40, 64}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      LayerNormalization reference(shape, axis);
      for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
        const Tensor x = Random(dtype, shape, 1, 1, 3), scale = Random(dtype, reference.row_shape, 2);
        const Tensor bias = Random(dtype, reference.row_shape, 3);
        KernelCall call("LayerNormalization", "");
        call.In(x)
            .In(scale)
            .In(bias)
            .Attr("axis", axis - static_cast<int64_t>(shape.size()))
            .Attr("epsilon", 0.25f);
        KernelCall alone = call;
        call.Out(dtype, shape).Out(dtype, reference.statistics_shape).Out(dtype, reference.statistics_shape);
        ExpectNear(call.Get(0), reference.Forward(Values(x), Values(scale), Values(bias)), Tolerance(dtype));
        ExpectNear(call.Get(1), reference.mean, Tolerance(dtype));
        ExpectNear(call.Get(2), reference.inverse, Tolerance(dtype));
        const std::string bytes = call.Bytes();
        EXPECT_EQ(bytes, call.Threads(3).Bytes());
        EXPECT_EQ(bytes, call.Misalign(8).Bytes());
        alone.Out(dtype, shape).At(0);
        ExpectNear(alone.Get(), call.Get(0), 0);
      }
    }
  }
  // Statistics of float64 rows as float32, which ONNX's stash_type asks for; no bias.
  const Tensor x = Make(DType::kFloat64, {1, 2}, {1, 3}), scale = Make(DType::kFloat64, {2}, {1, 2});
  KernelCall call("LayerNormalization", "");
  call.In(x)
      .In(scale)
      .NoIn()
      .Attr("epsilon", 0.0f)
      .Out(DType::kFloat64, {1, 2})
      .Out(DType::kFloat32, {1, 1})
      .NoOut();
  EXPECT_THAT(call.Get(0), testing::ElementsAre(-1, 2));
  EXPECT_THAT(call.Get(1), testing::ElementsAre(2));
}

TEST(LayerNormalization, GradientsAreTheDerivatives) {
  for (const Shape& shape : std::vector<Shape>{{2, 3, 5}, {3, 70}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      LayerNormalization reference(shape, axis);
      for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
        const Tensor dy = Random(dtype, shape, 4), x = Random(dtype, shape, 1);
        const Tensor scale = Random(dtype, reference.row_shape, 2);
        const std::vector<double> bias(reference.length, 0.5), xs = Values(x), scales = Values(scale);
        reference.Forward(xs, scales, bias);
        const Tensor mean = Make(dtype, reference.statistics_shape, reference.mean);
        const Tensor inverse = Make(dtype, reference.statistics_shape, reference.inverse);
        const auto loss = [&](const std::vector<double>& x, const std::vector<double>& scale,
                              const std::vector<double>& bias) {
          return Total(Times(reference.Forward(x, scale, bias), Values(dy)));
        };
        const double tolerance = dtype == DType::kFloat32 ? 2e-5 : 1e-7;
        KernelCall input("LayerNormalizationInputGrad", kHelpers);
        input.In(dy).In(x).In(scale).In(mean).In(inverse).Out(dtype, shape).Attr("axis", axis);
        ExpectNear(input.Get(), NumericGradient([&](const auto& at) { return loss(at, scales, bias); }, xs),
                   tolerance);
        EXPECT_EQ(input.Bytes(), input.At(0).Threads(2).Bytes());
        KernelCall weight("LayerNormalizationWeightGrad", kHelpers);
        weight.In(dy).In(x).In(mean).In(inverse).Attr("axis", axis);
        weight.Out(dtype, reference.row_shape).Out(dtype, reference.row_shape);
        ExpectNear(weight.Get(0), NumericGradient([&](const auto& at) { return loss(xs, at, bias); }, scales),
                   tolerance);
        ExpectNear(weight.Get(1), NumericGradient([&](const auto& at) { return loss(xs, scales, at); }, bias),
                   tolerance);
        EXPECT_EQ(weight.Bytes(), weight.Threads(3).Bytes());
      }
    }
  }
}

}  // namespace
}  // namespace pipec
