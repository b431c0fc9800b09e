// The ops that draw random numbers: distributions, and what a draw depends on.
#include <cmath>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

KernelCall Like(const std::string& op, DType dtype, int64_t samples, int64_t each) {
  KernelCall call(op, "");
  call.Attr("key", int64_t{7}).Attr("batch_axis", int64_t{0}).Attr("samples", samples);
  call.In(Make(dtype, {samples, each}, std::vector<double>(samples * each))).Out(dtype, {samples, each});
  return call;
}

class RandomTest : public ::testing::TestWithParam<DType> {};

TEST_P(RandomTest, UniformFillsItsRangeEvenly) {
  KernelCall call = Like("RandomUniformLike", GetParam(), 4, 10000);
  call.Attr("low", -1.0f).Attr("high", 3.0f);
  double sum = 0;
  std::vector<int> quarters(4);
  for (double value : call.Get()) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 3);
    sum += value;
    ++quarters[static_cast<int>(value + 1)];
  }
  EXPECT_NEAR(sum / 40000, 1, 0.03);  // 5 standard deviations
  for (int count : quarters) EXPECT_NEAR(count, 10000, 450);
}

TEST_P(RandomTest, NormalHasItsMoments) {
  KernelCall call = Like("RandomNormalLike", GetParam(), 4, 10000);
  call.Attr("mean", 2.0f).Attr("scale", 3.0f);
  double moments[4] = {};
  for (double value : call.Get()) {
    const double z = (value - 2) / 3;
    moments[0] += z, moments[1] += z * z, moments[2] += z * z * z, moments[3] += z * z * z * z;
  }
  EXPECT_NEAR(moments[0] / 40000, 0, 0.025);
  EXPECT_NEAR(moments[1] / 40000, 1, 0.036);
  EXPECT_NEAR(moments[2] / 40000, 0, 0.1);
  EXPECT_NEAR(moments[3] / 40000, 3, 0.25);
}

TEST_P(RandomTest, ASampleIsDrawnAlikeInEveryMicrobatchAndByAnyThreads) {
  for (const char* op : {"RandomUniformLike", "RandomNormalLike"}) {
    const int64_t each = 5001;
    KernelCall whole = Like(op, GetParam(), 6, each);
    const std::vector<double> all = whole.Get();
    EXPECT_EQ(whole.Threads(3).Get(), all) << op;
    KernelCall part = Like(op, GetParam(), 2, each);
    part.scalars.first_sample = 4;
    EXPECT_EQ(part.Get(), std::vector<double>(all.begin() + 4 * each, all.end())) << op;
    part.scalars.step = 1;
    EXPECT_NE(part.Get(), std::vector<double>(all.begin() + 4 * each, all.end())) << op;
    EXPECT_NE(std::vector<double>(all.begin(), all.begin() + each),
              std::vector<double>(all.begin() + each, all.begin() + 2 * each))
        << op;
    EXPECT_NE(Like(op, GetParam(), 6, each).Attr("key", int64_t{8}).Get(), all) << op;
  }
}

TEST_P(RandomTest, MultinomialFollowsTheLogProbabilities) {
  KernelCall call("Multinomial", "");
  const double log_half = std::log(0.5), log_eighth = std::log(0.125);
  call.In(Make(GetParam(), {2, 3}, {log_half + 9, std::log(0.375) + 9, log_eighth + 9, -1e9, 0, -1e9}));
  call.Attr("sample_size", int64_t{8000}).Out(DType::kInt64, {2, 8000});
  const std::vector<double> drawn = call.Get();
  std::vector<int> counts(3);
  for (int i = 0; i < 8000; ++i) ++counts[static_cast<int>(drawn[i])];
  EXPECT_NEAR(counts[0], 4000, 225);
  EXPECT_NEAR(counts[1], 3000, 220);
  EXPECT_NEAR(counts[2], 1000, 150);
  EXPECT_EQ(std::vector<double>(drawn.begin() + 8000, drawn.end()), std::vector<double>(8000, 1));
}

TEST_P(RandomTest, WhatIsNoRangeIsRefused) {
  KernelCall call = Like("RandomUniformLike", GetParam(), 2, 3);
  EXPECT_THAT(call.Attr("low", 2.0f).Error(), ::testing::HasSubstr("low and high"));
}

INSTANTIATE_TEST_SUITE_P(Floats, RandomTest, ::testing::Values(DType::kFloat32, DType::kFloat64));

}  // namespace
}  // namespace pipec
