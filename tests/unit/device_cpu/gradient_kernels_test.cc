// Gradients of convolutions, pooling, batch normalization and recurrent layers: float32 against the float64 loops,
// which the tests of the gradient rules compare with differences; the same bytes every time, but for
// weights of convolutions for every number of threads; what is refused. Which place of a window MaxPool names.
// Batch normalization in evaluation.
#include <cmath>
#include <limits>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;
constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64;

// Shapes as in ONNX; output of the forward op given by hand.
struct Convolved {
  Ints x, w, y, strides, dilations, pads;
  int64_t groups = 1;
};

const Convolved kConvolved[] = {
    {{2, 3, 9}, {4, 3, 3}, {2, 4, 5}, {2}, {1}, {1, 1}},
    {{3, 16, 12, 13}, {8, 16, 3, 3}, {3, 8, 12, 13}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {{2, 8, 14, 14}, {16, 8, 1, 1}, {2, 16, 7, 7}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
    {{2, 3, 20, 20}, {16, 3, 7, 7}, {2, 16, 10, 10}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
    {{2, 6, 8, 9}, {6, 1, 3, 3}, {2, 6, 6, 7}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 6},
    {{1, 4, 9, 8}, {6, 2, 3, 2}, {1, 6, 4, 8}, {2, 1}, {2, 3}, {1, 1, 1, 2}, 2},
    {{2, 2, 7, 7}, {4, 2, 2, 2}, {2, 4, 2, 2}, {3, 3}, {1, 1}, {0, 0, 0, 0}},
    // Few windows.
    {{2, 12, 4, 5}, {40, 12, 3, 3}, {2, 40, 2, 2}, {2, 2}, {1, 1}, {1, 1, 1, 0}},
    {{1, 9, 2, 4, 3}, {16, 9, 1, 2, 3}, {1, 16, 2, 1, 2}, {1, 3, 1}, {1, 1, 2}, {0, 0, 2, 0, 0, 1}},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 3, 3, 3, 5}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0, 0, 1, 0}},
};

Shape ToShape(const Ints& dims) { return {dims.begin(), dims.end()}; }

KernelCall Call(const Convolved& c, absl::string_view op, bool transposed, DType dtype) {
  const Ints &x = transposed ? c.y : c.x, &y = transposed ? c.x : c.y;
  const bool weight = op == "WeightGrad";
  KernelCall call(absl::StrCat(transposed ? "ConvTranspose" : "Conv", op), kHelpers);
  call.Attr("strides", c.strides).Attr("dilations", c.dilations).Attr("pads", c.pads).Attr("group", c.groups);
  // Places that no window of a transposed convolution reaches.
  if (transposed) {
    Ints extra;
    const size_t rank = c.strides.size();
    for (size_t i = 0; i < rank; ++i) {
      extra.push_back(c.x[i + 2] + c.pads[i] + c.pads[i + rank] - (c.y[i + 2] - 1) * c.strides[i] -
                      (c.w[i + 2] - 1) * c.dilations[i] - 1);
    }
    call.Attr("output_padding", extra);
  }
  call.Attr("shape", weight ? c.w : x);
  call.In(Random(dtype, ToShape(y), 1)).In(Random(dtype, ToShape(weight ? x : c.w), 2));
  call.Out(dtype, ToShape(weight ? c.w : x));
  return call;
}

TEST(ConvolutionGradients, Float32IsFloat64Rounded) {
  for (const Convolved& c : kConvolved) {
    for (const bool transposed : {false, true}) {
      for (absl::string_view op : {"InputGrad", "WeightGrad"}) {
        ExpectNear(Call(c, op, transposed, kF32).Get(), Call(c, op, transposed, kF64).Get(), 1e-4,
                   absl::StrCat(op, transposed, " of ", ToString(ToShape(c.x))));
      }
    }
  }
}

// oneDNN adds a weight's gradient up thread by thread: the same for the same number of threads.
TEST(ConvolutionGradients, AreTheSameEveryTime) {
  for (const Convolved& c : kConvolved) {
    for (const bool transposed : {false, true}) {
      KernelCall input = Call(c, "InputGrad", transposed, kF32), weight = Call(c, "WeightGrad", transposed, kF32);
      const std::string one = input.Bytes();
      for (int threads : {1, 2, 3, 4}) {
        EXPECT_EQ(input.Threads(threads).Bytes(), one) << ToString(ToShape(c.x)) << " " << threads;
        const std::string first = weight.Threads(threads).Bytes();
        for (int k = 0; k < 3; ++k) EXPECT_EQ(weight.Bytes(), first) << ToString(ToShape(c.x)) << " " << threads;
      }
    }
  }
}

TEST(PoolGradients, IndicesOutsideOfThePlaneAreRefused) {
  KernelCall call("MaxPoolGrad", kHelpers);
  call.Attr("shape", Ints{1, 2, 3})
      .Attr("kernel_shape", Ints{3})
      .In(Make(kF32, {1, 2, 1}, {1, 1}))
      .In(Make(DType::kInt64, {1, 2, 1}, {0, 2}));
  EXPECT_THAT(call.Out(kF32, {1, 2, 3}).Error(), testing::HasSubstr("index 2 is outside [3,6)"));
}

// The second window of each plane lies behind X: minus infinity, and nothing flows back.
TEST(PoolGradients, AWindowInThePaddingAloneReadsNothing) {
  const auto call = [](const char* op, const char* domain) {
    KernelCall call(op, domain);
    call.Attr("kernel_shape", Ints{2}).Attr("strides", Ints{2}).Attr("pads", Ints{0, 2});
    return call;
  };
  KernelCall pool = call("MaxPool", "");
  pool.In(Make(kF32, {1, 2, 2}, {1, 2, 4, 3})).Out(kF32, {1, 2, 2}).Out(DType::kInt64, {1, 2, 2});
  EXPECT_THAT(pool.Get(1), testing::ElementsAre(1, 0, 2, 2));
  KernelCall gradient = call("MaxPoolGrad", kHelpers);
  gradient.Attr("shape", Ints{1, 2, 2}).In(Make(kF32, {1, 2, 2}, {1, 2, 3, 4}));
  gradient.In(Make(DType::kInt64, {1, 2, 2}, {1, 0, 2, 2})).Out(kF32, {1, 2, 2});
  EXPECT_THAT(gradient.Get(), testing::ElementsAre(0, 1, 3, 0));
}

// The gradient goes to the first of the greatest, as in PyTorch; to the last NaN.
TEST(PoolGradients, IndicesOfTiesInfinitiesAndNan) {
  const double nan = std::nan(""), least = -std::numeric_limits<double>::infinity();
  KernelCall call("MaxPool", "");
  call.Attr("kernel_shape", Ints{3}).Attr("strides", Ints{3});
  call.In(Make(kF32, {1, 1, 15}, {2, 7, 7, 5, 5, 1, least, least, least, nan, 9, nan, nan, 1, 2}));
  call.Out(kF32, {1, 1, 5}).Out(DType::kInt64, {1, 1, 5});
  EXPECT_THAT(call.Get(0), testing::ElementsAre(7, 5, least, testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(call.Get(1), testing::ElementsAre(1, 3, 6, 11, 12));
}

// Integers, whose sums are exact whatever their order.
TEST(BatchNormalizationGradients, SumsHoldEveryPlaceOfEverySample) {
  constexpr int64_t kSamples = 5, kChannels = 3;
  for (int64_t places : {1, 4, 31, 32, 33, 70}) {
    std::vector<double> dy(kSamples * kChannels * places), x(dy.size());
    std::vector<double> bias(kChannels), scale(kChannels);
    for (size_t i = 0; i < dy.size(); ++i) {
      dy[i] = static_cast<double>(i * i % 127);
      x[i] = static_cast<double>(i * 7 % 31);
      const size_t channel = i / places % kChannels;
      bias[channel] += dy[i];
      scale[channel] += dy[i] * (x[i] - 2);
    }
    const Shape shape = {kSamples, kChannels, places};
    KernelCall call("BatchNormalizationWeightGrad", kHelpers);
    call.Attr("epsilon", 0.0f).In(Make(kF32, shape, dy)).In(Make(kF32, shape, x));
    call.In(Make(kF32, {kChannels}, {2, 2, 2})).In(Make(kF32, {kChannels}, {1, 1, 1}));
    call.Out(kF32, {kChannels}).Out(kF32, {kChannels});
    EXPECT_EQ(call.Get(0), scale) << places;
    EXPECT_EQ(call.Get(1), bias) << places;
  }
}

TEST(BatchNormalizationGradients, EvaluationUsesTheRunningStatisticsAndKeepsThem) {
  KernelCall call("TrainingBatchNormalization", kHelpers);
  call.Attr("epsilon", 0.0f).In(Make(kF32, {2, 1, 1}, {1, 3}));
  for (double value : {2.0, 1.0, 1.0, 4.0}) call.In(Make(kF32, {1}, {value}));
  call.Out(kF32, {2, 1, 1}).Out(kF32, {1}).Out(kF32, {1});
  EXPECT_THAT(call.Get(0), testing::ElementsAre(-1, 3));  // mean 2, deviation 1
  EXPECT_THAT(call.Get(1), testing::ElementsAre(2));
  EXPECT_THAT(call.Get(2), testing::ElementsAre(1));
  call.scalars.training = false;
  EXPECT_THAT(call.Get(0), testing::ElementsAre(1, 3));  // mean 1, deviation 2

  KernelCall average("RunningAverage", kHelpers);
  average.Attr("momentum", 0.75f).In(Make(kF32, {1}, {8})).In(Make(kF32, {1}, {4})).Out(kF32, {1}).At(0);
  EXPECT_THAT(average.Get(), testing::ElementsAre(7));
  average.scalars.training = false;
  EXPECT_THAT(average.Get(), testing::ElementsAre(8));
}

TEST(BatchNormalizationGradients, ThreadsDoNotMatter) {
  for (DType dtype : {kF32, kF64}) {
    KernelCall input("BatchNormalizationInputGrad", kHelpers);
    input.In(Random(dtype, {4, 9, 21, 21}, 1)).In(Random(dtype, {4, 9, 21, 21}, 2)).In(Random(dtype, {9}, 3));
    input.In(Random(dtype, {9}, 4)).In(Random(dtype, {9}, 5, 1, 2)).Out(dtype, {4, 9, 21, 21});
    KernelCall weight("BatchNormalizationWeightGrad", kHelpers);
    weight.In(Random(dtype, {4, 9, 21, 21}, 1)).In(Random(dtype, {4, 9, 21, 21}, 2)).In(Random(dtype, {9}, 4));
    weight.In(Random(dtype, {9}, 5, 1, 2)).Out(dtype, {9}).Out(dtype, {9});
    for (KernelCall* call : {&input, &weight}) {
      const std::string one = call->Bytes();
      for (int threads : {2, 3}) EXPECT_EQ(call->Threads(threads).Bytes(), one);
    }
  }
}

KernelCall Recurrent(absl::string_view op, int64_t gates, DType dtype) {
  constexpr int64_t kSteps = 6, kBatch = 5, kInput = 7, kHidden = 9;
  const int64_t rows = gates * kHidden;
  KernelCall call(op, kHelpers);
  call.Attr("hidden_size", kHidden).Attr("direction", std::string("bidirectional"));
  call.In(Random(dtype, {kSteps, kBatch, kInput}, 1, -1, 1)).In(Random(dtype, {2, rows, kInput}, 2, -0.4, 0.4));
  call.In(Random(dtype, {2, rows, kHidden}, 3, -0.4, 0.4)).In(Random(dtype, {2, 2 * rows}, 4, -0.4, 0.4)).NoIn();
  call.In(Random(dtype, {2, kBatch, kHidden}, 5)).NoIn().In(Random(dtype, {kSteps, 2, kBatch, kHidden}, 6));
  call.In(Random(dtype, {2, kBatch, kHidden}, 7)).NoIn();
  const Shape row = {2, kSteps * kBatch, kHidden}, state = {2, kBatch, kHidden};
  call.Out(dtype, {kSteps, kBatch, kInput}).Out(dtype, {2, kSteps * kBatch, rows}).Out(dtype, row).Out(dtype, state);
  if (op == "LSTMGrad") call.Out(dtype, state);
  if (op == "GRUGrad") call.Out(dtype, row);
  return call;
}

TEST(RecurrentGradients, Float32IsFloat64RoundedForEveryNumberOfThreads) {
  for (const auto& [op, gates] : {std::pair("RNNGrad", 1), {"GRUGrad", 3}, {"LSTMGrad", 4}}) {
    for (int k = 0; k < (gates == 1 ? 4 : 5); ++k) {
      ExpectNear(Recurrent(op, gates, kF32).Get(k), Recurrent(op, gates, kF64).Get(k), 1e-4,
                 absl::StrCat(op, " result ", k));
    }
    KernelCall call = Recurrent(op, gates, kF32);
    const std::string one = call.Bytes();
    for (int threads : {2, 3}) EXPECT_EQ(call.Threads(threads).Bytes(), one) << op;
  }
}

TEST(RecurrentGradients, WhatHasNoGradientHereIsRefused) {
  EXPECT_THAT(Recurrent("LSTMGrad", 4, kF32).Attr("clip", 1.0f).Error(),
              testing::HasSubstr("attribute clip has no gradient"));
  const std::vector<std::string> names(2, "LeakyRelu");
  EXPECT_THAT(Recurrent("RNNGrad", 1, kF32)
                  .Attr("activations", names)
                  .Attr("activation_alpha", std::vector<float>{-0.5f, -0.5f})
                  .Error(),
              testing::HasSubstr("alpha -0.5, wanted a positive one"));
}

}  // namespace
}  // namespace pipec
