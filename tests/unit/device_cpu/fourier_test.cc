// DFT of any length against the sum that defines it.
#include <cmath>
#include <complex>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

// x: n complex numbers as pairs.
std::vector<double> Naive(const std::vector<double>& x, int64_t n, bool inverse) {
  std::vector<double> result;
  for (int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double angle = 2 * M_PI * static_cast<double>(j * k % n) / static_cast<double>(n);
      sum += std::complex<double>(x[2 * j], x[2 * j + 1]) * std::polar(1.0, inverse ? angle : -angle);
    }
    if (inverse) sum /= static_cast<double>(n);
    result.push_back(sum.real());
    result.push_back(sum.imag());
  }
  return result;
}

class FourierTest : public ::testing::TestWithParam<DType> {};

TEST_P(FourierTest, EveryLengthIsTheDefiningSum) {
  for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 31, 32, 97, 100, 127, 128, 251}) {
    for (bool inverse : {false, true}) {
      const Tensor x = Random(GetParam(), {n, 2}, static_cast<int>(n));
      KernelCall call("DFT", "");
      call.Attr("inverse", int64_t{inverse}).In(x).Out(GetParam(), {n, 2});
      ExpectNear(call.Get(), Naive(Values(x), n, inverse), 10 * Tolerance(GetParam()), std::to_string(n));
    }
  }
}

TEST_P(FourierTest, HalfOfTheBinsGiveTheRealLineBack) {
  for (int64_t n : {2, 5, 8, 13, 20}) {
    const Tensor x = Random(GetParam(), {3, n, 1}, 1), length = Make(DType::kInt64, {}, {double(n)});
    KernelCall there("DFT", ""), back("DFT", "");
    there.Attr("onesided", int64_t{1}).In(x).In(length).Out(GetParam(), {3, n / 2 + 1, 2});
    const std::vector<double> bins = there.Get();
    EXPECT_EQ(there.Threads(3).Get(), bins);
    back.Attr("onesided", int64_t{1}).Attr("inverse", int64_t{1});
    back.In(Make(GetParam(), {3, n / 2 + 1, 2}, bins)).In(length).Out(GetParam(), {3, n, 1});
    ExpectNear(back.Get(), Values(x), Tolerance(GetParam()), std::to_string(n));
  }
}

TEST_P(FourierTest, WhatDoesNotFitIsRefused) {
  KernelCall complex("DFT", ""), longer("DFT", "");
  complex.Attr("onesided", int64_t{1}).In(Random(GetParam(), {4, 2}, 1)).Out(GetParam(), {3, 2});
  EXPECT_THAT(complex.Error(), ::testing::HasSubstr("onesided is for real x"));
  longer.In(Random(GetParam(), {4, 1}, 1)).In(Make(DType::kInt64, {}, {6})).Out(GetParam(), {4, 2});
  EXPECT_THAT(longer.Error(), ::testing::HasSubstr("dft_length is 6"));
}

INSTANTIATE_TEST_SUITE_P(Floats, FourierTest, ::testing::Values(DType::kFloat32, DType::kFloat64));

TEST(MaxRoiPool, IsTheMaximumOfRoundedBins) {
  KernelCall call("MaxRoiPool", "");
  std::vector<double> image(32);
  for (int i = 0; i < 32; ++i) image[i] = i;
  call.Attr("pooled_shape", std::vector<int64_t>{2, 2}).Attr("spatial_scale", 0.5f);
  // Sample 1, places 0 to 2 of both axes: bins of 1.5 places, so 0 to 1 and 1 to 2; then one beyond the image.
  call.In(Make(DType::kFloat32, {2, 1, 4, 4}, image));
  call.In(Make(DType::kFloat32, {2, 5}, {1, 0, 0, 4, 4, 0, 20, 20, 24, 24}));
  call.Out(DType::kFloat32, {2, 1, 2, 2});
  EXPECT_EQ(call.Get(), (std::vector<double>{21, 22, 25, 26, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace pipec
