// Products of matrices by a warp: right ones, and what NVIDIA's guide forbids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mma.h>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

namespace wmma = nvcuda::wmma;
using testing::HasSubstr;

constexpr int kSeeds = 20, kStep = 24;

// Two warps: rows 0 to 15 and 16 to 31 of a product of 32 x 32 and 32 x 16, by two matrices each.
template <typename T, typename LayoutA, typename LayoutB>
__global__ void Multiply(const T* a, const T* b, float* y, int a_step) {
  const unsigned warp = threadIdx.x / 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.5f);
  for (unsigned k = 0; k < 32; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> right;
    constexpr bool kARows = std::is_same_v<LayoutA, wmma::row_major>,
                   kBRows = std::is_same_v<LayoutB, wmma::row_major>;
    wmma::load_matrix_sync(left, kARows ? a + warp * 16 * a_step + k : a + k * a_step + warp * 16, a_step);
    wmma::load_matrix_sync(right, kBRows ? b + k * 16 : b + k, kBRows ? 16 : 32);
    wmma::mma_sync(sums, left, right, sums);
  }
  wmma::store_matrix_sync(y + warp * 16 * kStep, sums, kStep, wmma::mem_row_major);
}

template <typename T, typename LayoutA, typename LayoutB>
void ExpectProduct() {
  constexpr bool kARows = std::is_same_v<LayoutA, wmma::row_major>,
                 kBRows = std::is_same_v<LayoutB, wmma::row_major>;
  constexpr int kAStep = 40;
  std::vector<T> a(32 * kAStep), b(32 * 16);
  const auto a_of = [](int i, int k) { return float((i * 5 + k * 3) % 7 - 3); };
  const auto b_of = [](int k, int j) { return float((k * 2 + j * 7) % 5 - 2); };
  for (int k = 0; k < 32; ++k) {
    for (int i = 0; i < 32; ++i) a[kARows ? i * kAStep + k : k * kAStep + i] = T(a_of(i, k));
    for (int j = 0; j < 16; ++j) b[kBRows ? k * 16 + j : j * 32 + k] = T(b_of(k, j));
  }
  for (int seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    DeviceArray<T> left(a), right(b);
    DeviceArray<float> y(std::vector<float>(32 * kStep, -1.0f));
    ASSERT_TRUE(pipec::Launch(Multiply<T, LayoutA, LayoutB>, 1, 64, nullptr, left.data(), right.data(),
                              y.data(), kAStep)
                    .ok());
    const std::vector<float> got = y.Read();
    ASSERT_THAT(TakeReports(), testing::IsEmpty());
    for (int i = 0; i < 32; ++i) {
      for (int j = 0; j < kStep; ++j) {
        float wanted = j < 16 ? 0.5f : -1.0f;
        for (int k = 0; k < 32 && j < 16; ++k) wanted += a_of(i, k) * b_of(k, j);
        ASSERT_EQ(got[i * kStep + j], wanted) << i << " " << j;
      }
    }
  }
}
TEST(Matrices, OfAWarpAreMultiplied) {
  ExpectProduct<__half, wmma::row_major, wmma::row_major>();
  ExpectProduct<__half, wmma::row_major, wmma::col_major>();
  ExpectProduct<__nv_bfloat16, wmma::row_major, wmma::row_major>();
  ExpectProduct<__nv_bfloat16, wmma::col_major, wmma::col_major>();
}

// Each seed ends with an error whose report says so.
void ExpectFault(const std::string& words, int threads, void (*kernel)(float*)) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    DeviceArray<float> data(std::vector<float>(1024, 1.0f));
    ASSERT_TRUE(pipec::Launch(kernel, 1, threads, nullptr, data.data()).ok());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure) << "seed " << seed;
    const std::vector<std::string> reports = TakeReports();
    ASSERT_EQ(reports.size(), 1u);
    ASSERT_THAT(reports[0], HasSubstr(words));
  }
  SetSeed(0);
}

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__global__ void LoadUnaligned(float* x) {
  Left left;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(x + 4), 16);
}
__global__ void LoadOddRows(float* x) {
  Left left;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(x), 20);
}
__global__ void StoreOddRows(float* x) {
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  wmma::store_matrix_sync(x, sums, 18, wmma::mem_row_major);
}
__global__ void LoadElsewhere(float* x) {
  Left left;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(x) + threadIdx.x / 16 * 256, 16);
}
__global__ void LoadByHalfAWarp(float* x) {
  Sums sums;
  wmma::load_matrix_sync(sums, x, 16, wmma::mem_row_major);
}
__global__ void MultiplyByHalfAWarp(float*) {
  Left left;
  Right right;
  Sums sums;
  wmma::mma_sync(sums, left, right, sums);
}
__global__ void ReadAnothersAtOnce(float* x) {
  __shared__ float stored[256];
  Sums sums;
  wmma::fill_fragment(sums, 2.0f);
  wmma::store_matrix_sync(stored, sums, 16, wmma::mem_row_major);
  x[threadIdx.x] = stored[threadIdx.x];
}
__global__ void StoreBehindTheEnd(float* x) {
  Sums sums;
  wmma::fill_fragment(sums, 2.0f);
  wmma::store_matrix_sync(x + 1024 - 248, sums, 16, wmma::mem_row_major);
}

TEST(Matrices, ThatAreNotAlignedAreFaults) {
  ExpectFault("does not begin at a multiple of 32 bytes", 32, LoadUnaligned);
  ExpectFault("has rows 40 bytes apart, no multiple of 16", 32, LoadOddRows);
  ExpectFault("has rows 72 bytes apart, no multiple of 16", 32, StoreOddRows);
}
TEST(Matrices, AreOfAWholeWarpThatAgrees) {
  ExpectFault("is not the same for all lanes", 32, LoadElsewhere);
  ExpectFault("is not of a whole warp", 16, LoadByHalfAWarp);
  ExpectFault("is not of a whole warp", 48, MultiplyByHalfAWarp);
}
TEST(Matrices, OrderNoMemory) { ExpectFault("written", 32, ReadAnothersAtOnce); }
TEST(Matrices, AreCheckedLikeAnyAccess) {
  SetSeed(0);
  DeviceArray<float> data(std::vector<float>(1024, 1.0f));
  ASSERT_TRUE(pipec::Launch(StoreBehindTheEnd, 1, 32, nullptr, data.data()).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(TakeReports().size(), 1u);
  SetSeed(0);
}

// What nobody cleared is no number.
__global__ void ForgetToClear(float* x) {
  Sums sums;
  wmma::store_matrix_sync(x, sums, 16, wmma::mem_row_major);
}
TEST(Matrices, ThatNobodyFilledAreNaN) {
  SetSeed(0);
  DeviceArray<float> data(std::vector<float>(256, 1.0f));
  ASSERT_TRUE(pipec::Launch(ForgetToClear, 1, 32, nullptr, data.data()).ok());
  for (const float x : data.Read()) ASSERT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace cuda_emulation
