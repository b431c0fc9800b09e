// Right kernels give right results, whatever order their threads run in.
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

constexpr int kSeeds = 50;

std::vector<float> Numbers(int count) {
  std::vector<float> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = static_cast<float>((i * 37) % 101 - 50);
  return numbers;
}

// Runs `test` for many seeds; nothing may be found wrong.
template <typename Test>
void ForSeeds(const Test& test) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    test();
    const std::vector<std::string> reports = TakeReports();
    ASSERT_TRUE(reports.empty()) << "seed " << seed << ": " << reports.front();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

template <int kThreads>
__global__ void ReverseInBlock(const float* in, float* out) {
  __shared__ float values[kThreads];
  const int at = blockIdx.x * kThreads + threadIdx.x;
  values[threadIdx.x] = in[at];
  __syncthreads();
  out[at] = values[kThreads - 1 - threadIdx.x];
}

TEST(RightKernels, SharedMemoryAndBarrier) {
  const std::vector<float> in = Numbers(3 * 64);
  ForSeeds([&] {
    DeviceArray<float> x(in), y(std::vector<float>(in.size(), 0));
    EXPECT_TRUE(pipec::Launch(ReverseInBlock<64>, 3, 64, nullptr, x.data(), y.data()).ok());
    const std::vector<float> out = y.Read();
    ASSERT_EQ(out.size(), in.size());
    for (int i = 0; i < 192; ++i) EXPECT_EQ(out[i], in[i / 64 * 64 + 63 - i % 64]);
  });
}

__device__ float SumOfWarp(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

template <int kThreads>
__global__ void SumOfBlock(const float* in, float* out, int count) {
  __shared__ float partial[kThreads / 32];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) sum += in[blockIdx.x * count + i];
  sum = SumOfWarp(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = SumOfWarp(threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : 0);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

TEST(RightKernels, ReductionOfABlock) {
  const std::vector<float> in = Numbers(4 * 200);
  ForSeeds([&] {
    DeviceArray<float> x(in), y(std::vector<float>(4, 0));
    EXPECT_TRUE(pipec::Launch(SumOfBlock<128>, 4, 128, nullptr, x.data(), y.data(), 200).ok());
    const std::vector<float> out = y.Read();
    ASSERT_EQ(out.size(), 4u);
    for (int b = 0; b < 4; ++b)
      EXPECT_EQ(out[b], std::accumulate(in.begin() + b * 200, in.begin() + (b + 1) * 200, 0.0f));
  });
}

// Hillis and Steele's scan in two buffers.
template <int kThreads>
__global__ void Scan(const int* in, int* out) {
  __shared__ int values[2][kThreads];
  const int t = threadIdx.x;
  values[0][t] = in[t];
  __syncthreads();
  int from = 0;
  for (int step = 1; step < kThreads; step *= 2) {
    values[1 - from][t] = values[from][t] + (t >= step ? values[from][t - step] : 0);
    from = 1 - from;
    __syncthreads();
  }
  out[t] = values[from][t];
}

TEST(RightKernels, Scan) {
  std::vector<int> in(256), wanted(256);
  for (int i = 0; i < 256; ++i) in[i] = i % 7;
  std::partial_sum(in.begin(), in.end(), wanted.begin());
  ForSeeds([&] {
    DeviceArray<int> x(in), y(std::vector<int>(256, 0));
    EXPECT_TRUE(pipec::Launch(Scan<256>, 1, 256, nullptr, x.data(), y.data()).ok());
    EXPECT_EQ(y.Read(), wanted);
  });
}

__global__ void Histogram(const int* in, int* bins, int* largest, unsigned* seen, int count) {
  __shared__ int own[8];
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  if (threadIdx.x < 8) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&own[in[i] % 8], 1);
    atomicMax(largest, in[i]);
    atomicOr(&any, 1 << in[i] % 8);
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
  if (threadIdx.x == 0) atomicOr(seen, any);
}

TEST(RightKernels, Atomics) {
  std::vector<int> in(500), wanted(8, 0);
  for (int i = 0; i < 500; ++i) in[i] = i * i % 77, ++wanted[in[i] % 8];
  ForSeeds([&] {
    DeviceArray<int> x(in), bins(std::vector<int>(8, 0)), largest({0});
    DeviceArray<unsigned> seen({0});
    EXPECT_TRUE(
        pipec::Launch(Histogram, 3, 64, nullptr, x.data(), bins.data(), largest.data(), seen.data(), 500)
            .ok());
    EXPECT_EQ(bins.Read(), wanted);
    EXPECT_EQ(largest.Read(), std::vector<int>{*std::max_element(in.begin(), in.end())});
    EXPECT_EQ(seen.Read(), std::vector<unsigned>{0xff});
  });
}

__global__ void CompareAndSwapSum(const float* in, float* sum) {
  auto* bits = reinterpret_cast<unsigned*>(sum);
  unsigned assumed, old = 0;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_uint(__uint_as_float(assumed) + in[threadIdx.x]));
  } while (assumed != old);
}

TEST(RightKernels, CompareAndSwap) {
  const std::vector<float> in = Numbers(96);
  ForSeeds([&] {
    DeviceArray<float> x(in), sum({0.0f});
    EXPECT_TRUE(pipec::Launch(CompareAndSwapSum, 1, 96, nullptr, x.data(), sum.data()).ok());
    EXPECT_EQ(sum.Read(), std::vector<float>{std::accumulate(in.begin(), in.end(), 0.0f)});
  });
}

__global__ void Votes(const int* in, unsigned* ballots, int* any_all) {
  const int t = threadIdx.x;
  const unsigned ballot = __ballot_sync(0xffffffff, in[t] > 0);
  const int any = __any_sync(0xffffffff, in[t] > 90);
  const int all = __all_sync(0xffffffff, in[t] < 90);
  int count = __syncthreads_count(in[t] > 0);
  count += __syncthreads_or(in[t] > 91) + __syncthreads_and(in[t] > 0);  // neither is
  if (t % 32 == 0) ballots[t / 32] = ballot;
  if (t % 32 == 0) any_all[t / 32] = any + 2 * all + 4 * count;
}

TEST(RightKernels, Votes) {
  std::vector<int> in(64);
  for (int i = 0; i < 64; ++i) in[i] = i % 3 == 0 ? i : -1;
  in[40] = 91;
  unsigned ballots[2] = {0, 0};
  int count = 0;
  for (int i = 0; i < 64; ++i) ballots[i / 32] |= (in[i] > 0 ? 1u : 0u) << i % 32, count += in[i] > 0;
  ForSeeds([&] {
    DeviceArray<int> x(in), any_all({0, 0});
    DeviceArray<unsigned> y({0, 0});
    EXPECT_TRUE(pipec::Launch(Votes, 1, 64, nullptr, x.data(), y.data(), any_all.data()).ok());
    EXPECT_EQ(y.Read(), std::vector<unsigned>(ballots, ballots + 2));
    EXPECT_EQ(any_all.Read(), (std::vector<int>{2 + 4 * count, 1 + 4 * count}));
  });
}

// Every kind of shuffle, in groups of 8 lanes.
__global__ void Shuffles(const double* in, double* out) {
  const int t = threadIdx.x;
  out[t] = __shfl_sync(0xffffffff, in[t], 3, 8);
  out[32 + t] = __shfl_up_sync(0xffffffff, in[t], 2, 8);
  out[64 + t] = __shfl_down_sync(0xffffffff, in[t], 2, 8);
  out[96 + t] = __shfl_xor_sync(0xffffffff, in[t], 5, 8);
}

TEST(RightKernels, ShufflesInGroups) {
  std::vector<double> in(32), wanted(128);
  for (int i = 0; i < 32; ++i) in[i] = i + 0.5;
  for (int i = 0; i < 32; ++i) {
    wanted[i] = in[i / 8 * 8 + 3];
    wanted[32 + i] = i % 8 >= 2 ? in[i - 2] : in[i];
    wanted[64 + i] = i % 8 < 6 ? in[i + 2] : in[i];
    wanted[96 + i] = in[i / 8 * 8 + (i % 8 ^ 5)];
  }
  ForSeeds([&] {
    DeviceArray<double> x(in), y(std::vector<double>(128, 0));
    EXPECT_TRUE(pipec::Launch(Shuffles, 1, 32, nullptr, x.data(), y.data()).ok());
    EXPECT_EQ(y.Read(), wanted);
  });
}

// A warp reverses its values through shared memory, with __syncwarp alone; the two halves of the warp go their own
// ways.
__global__ void ReverseInWarp(const float* in, float* out) {
  __shared__ float values[64];
  const int t = threadIdx.x, half = t / 16 * 16;
  const unsigned mask = t % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  values[t] = in[t];
  __syncwarp(mask);
  out[t] = values[half + 15 - t % 16];
}

TEST(RightKernels, OrderInsideAWarp) {
  const std::vector<float> in = Numbers(64);
  ForSeeds([&] {
    DeviceArray<float> x(in), y(std::vector<float>(64, 0));
    EXPECT_TRUE(pipec::Launch(ReverseInWarp, 1, 64, nullptr, x.data(), y.data()).ok());
    const std::vector<float> out = y.Read();
    ASSERT_EQ(out.size(), in.size());
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], in[i / 16 * 16 + 15 - i % 16]);
  });
}

// Neighbouring bytes belong to different threads; that is no race.
__global__ void Bytes(const signed char* in, signed char* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = static_cast<signed char>(-in[i]);
}

TEST(RightKernels, NeighbouringBytes) {
  std::vector<signed char> in(77), wanted(77);
  for (int i = 0; i < 77; ++i) in[i] = static_cast<signed char>(i), wanted[i] = static_cast<signed char>(-i);
  ForSeeds([&] {
    DeviceArray<signed char> x(in), y(std::vector<signed char>(77, 0));
    EXPECT_TRUE(pipec::Launch(Bytes, 3, 32, nullptr, x.data(), y.data(), 77).ok());
    EXPECT_EQ(y.Read(), wanted);
  });
}

__global__ void Nothing() {}

__global__ void Mixed(const float* in, signed char step, int64_t count, double scale, bool negative,
                      const float* absent, float* out) {
  for (int64_t i = 0; i < count; i += step)
    out[i] = static_cast<float>(in[i] * scale * (negative ? -1 : 1)) + (absent ? absent[i] : 0);
}

// As in a call: each argument becomes what the parameter is.
TEST(RightKernels, ArgumentsTakeTheParametersTypes) {
  ForSeeds([&] {
    DeviceArray<float> x({1, 2, 3, 4}), y({0, 0, 0, 0});
    EXPECT_TRUE(pipec::Launch(Nothing, 2, 33, nullptr).ok());
    EXPECT_TRUE(pipec::Launch(Mixed, 1, 1, nullptr, x.data(), 2, 4u, 0.5f, 1, nullptr, y.data()).ok());
    EXPECT_EQ(y.Read(), (std::vector<float>{-0.5f, 0, -1.5f, 0}));
  });
}

struct Shape {
  int rows, columns;
  int order[3];
};

// Threads in two dimensions, blocks in three, a struct by value, a bf16 array of shared memory, a local array.
template <typename T>
__global__ void Transpose(const T* in, T* out, Shape shape) {
  __shared__ T tile[8][9];
  int at[3];
  at[shape.order[0]] = blockIdx.x * 8 + threadIdx.x;
  at[shape.order[1]] = blockIdx.y * 8 + threadIdx.y;
  at[shape.order[2]] = blockIdx.z;
  const size_t matrix = static_cast<size_t>(at[2]) * shape.rows * shape.columns;
  if (at[0] < shape.columns && at[1] < shape.rows)
    tile[threadIdx.y][threadIdx.x] = in[matrix + at[1] * shape.columns + at[0]];
  __syncthreads();
  const int column = blockIdx.y * 8 + threadIdx.x, row = blockIdx.x * 8 + threadIdx.y;
  if (column < shape.rows && row < shape.columns)
    out[matrix + row * shape.rows + column] = tile[threadIdx.x][threadIdx.y];
}

TEST(RightKernels, TransposeOfBfloat16) {
  constexpr int kRows = 13, kColumns = 20, kMatrices = 2;
  std::vector<__nv_bfloat16> in(kRows * kColumns * kMatrices);
  for (size_t i = 0; i < in.size(); ++i) in[i] = __float2bfloat16(static_cast<float>(i % 256));
  ForSeeds([&] {
    DeviceArray<__nv_bfloat16> x(in), y(in);
    EXPECT_TRUE(pipec::Launch(Transpose<__nv_bfloat16>, dim3(3, 2, kMatrices), dim3(8, 8), nullptr, x.data(),
                              y.data(), Shape{kRows, kColumns, {0, 1, 2}})
                    .ok());
    const std::vector<__nv_bfloat16> out = y.Read();
    ASSERT_EQ(out.size(), in.size());
    for (int m = 0; m < kMatrices; ++m) {
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < kColumns; ++c) {
          EXPECT_EQ(__bfloat162float(out[(m * kColumns + c) * kRows + r]),
                    __bfloat162float(in[(m * kRows + r) * kColumns + c]));
        }
      }
    }
  });
}

}  // namespace
}  // namespace cuda_emulation
