// The sample kernels, as the emulation runs them, against the same sums in double.
#include "tests/cuda_emulation/sample_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

template <typename T>
struct SampleKernels : testing::Test {};
using Types = testing::Types<float, __half, __nv_bfloat16>;
TYPED_TEST_SUITE(SampleKernels, Types);

template <typename T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-6 : 1e-2;

template <typename T>
std::vector<T> Numbers(int count) {
  std::vector<T> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = T(static_cast<float>((i * 37) % 101 - 50) / 16.0f);
  return numbers;
}

TYPED_TEST(SampleKernels, BiasGelu) {
  using T = TypeParam;
  constexpr int kCount = 1003, kColumns = 17;
  const std::vector<T> x = Numbers<T>(kCount + 1), bias = Numbers<T>(kColumns);
  for (const int shift : {0, 1}) {  // from an address that is not aligned, element by element
    for (int seed = 0; seed < 3; ++seed) {
      SetSeed(seed);
      DeviceArray<T> in(x), b(bias), out(x);
      ASSERT_TRUE(
          BiasGelu<T>(nullptr, in.data() + shift, b.data(), out.data() + shift, kCount, kColumns).ok());
      const std::vector<T> y = out.Read();
      ASSERT_THAT(TakeReports(), testing::IsEmpty());
      for (int i = 0; i < kCount; ++i) {
        const double sum =
            static_cast<double>(static_cast<float>(x[i + shift])) + static_cast<float>(bias[i % kColumns]);
        const double wanted = 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)));
        ASSERT_NEAR(static_cast<float>(y[i + shift]), wanted, kTolerance<T> * (1 + std::abs(wanted))) << i;
      }
    }
  }
}

TYPED_TEST(SampleKernels, Softmax) {
  using T = TypeParam;
  for (const int columns : {1, 31, 256, 700}) {
    constexpr int kRows = 3;
    const std::vector<T> x = Numbers<T>(kRows * columns);
    SetSeed(columns);
    DeviceArray<T> in(x), out(x);
    ASSERT_TRUE(Softmax<T>(nullptr, in.data(), out.data(), kRows, columns).ok());
    const std::vector<T> y = out.Read();
    ASSERT_THAT(TakeReports(), testing::IsEmpty());
    for (int r = 0; r < kRows; ++r) {
      double sum = 0;
      for (int c = 0; c < columns; ++c)
        sum += std::exp(static_cast<double>(static_cast<float>(x[r * columns + c])));
      for (int c = 0; c < columns; ++c) {
        ASSERT_NEAR(static_cast<float>(y[r * columns + c]),
                    std::exp(static_cast<double>(static_cast<float>(x[r * columns + c]))) / sum,
                    kTolerance<T>);
      }
    }
  }
}

}  // namespace
}  // namespace cuda_emulation
