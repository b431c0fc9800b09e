// Each kernel has one fault; each fault is found, at every seed, and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::HasSubstr;

constexpr int kSeeds = 100;

// Every seed ends with this error and a report that holds all words.
template <typename... A>
void ExpectFault(cudaError_t error, const std::vector<std::string>& words, dim3 grid, dim3 block,
                 void (*kernel)(float*, A...), int elements, A... arguments) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    DeviceArray<float> data(std::vector<float>(elements, 1.0f));
    ASSERT_TRUE(pipec::Launch(kernel, grid, block, nullptr, data.data(), arguments...).ok());
    ASSERT_EQ(cudaDeviceSynchronize(), error) << "seed " << seed;
    const std::vector<std::string> reports = TakeReports();
    ASSERT_EQ(reports.size(), 1u) << "seed " << seed;
    for (const std::string& word : words) ASSERT_THAT(reports[0], HasSubstr(word)) << "seed " << seed;
    // The device does nothing more, and says why.
    ASSERT_EQ(cudaMemset(data.data(), 0, 4), error);
    ASSERT_EQ(cudaGetLastError(), error);
  }
  SetSeed(0);
}

__global__ void NoBarrier(float* x) {
  __shared__ float values[64];
  values[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = values[63 - threadIdx.x];
}
TEST(WrongKernels, MissingBarrier) {
  ExpectFault(cudaErrorLaunchFailure, {"NoBarrier", "values", "written"}, 1, 64, NoBarrier, 64);
}

// The barrier is there, the second one, before the array is used again, is not.
__global__ void NoSecondBarrier(float* x) {
  __shared__ float values[64];
  for (int round = 0; round < 2; ++round) {
    values[threadIdx.x] = x[round * 64 + threadIdx.x];
    __syncthreads();
    x[round * 64 + threadIdx.x] = values[63 - threadIdx.x];
  }
}
TEST(WrongKernels, MissingSecondBarrier) {
  ExpectFault(cudaErrorLaunchFailure, {"NoSecondBarrier", "race", "values"}, 1, 64, NoSecondBarrier, 128);
}

// A reduction whose barrier stands outside of the loop.
__global__ void NoBarrierInLoop(float* x) {
  __shared__ float sum[128];
  sum[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) sum[threadIdx.x] += sum[threadIdx.x + half];
  }
  if (threadIdx.x == 0) x[0] = sum[0];
}
TEST(WrongKernels, MissingBarrierInALoop) {
  ExpectFault(cudaErrorLaunchFailure, {"NoBarrierInLoop", "race", "sum"}, 1, 128, NoBarrierInLoop, 128);
}

__global__ void NoWarpBarrier(float* x) {
  __shared__ float values[32];
  values[threadIdx.x] = 0;
  __syncwarp();
  values[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = values[threadIdx.x ^ 1];
}
TEST(WrongKernels, MissingWarpBarrier) {
  ExpectFault(cudaErrorLaunchFailure, {"NoWarpBarrier", "race", "values"}, 1, 32, NoWarpBarrier, 32);
}

// __syncwarp orders one warp, not the block.
__global__ void WarpBarrierForABlock(float* x) {
  __shared__ float values[64];
  values[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  x[threadIdx.x] = values[threadIdx.x ^ 32];
}
TEST(WrongKernels, WarpBarrierInPlaceOfABlocks) {
  ExpectFault(cudaErrorLaunchFailure, {"WarpBarrierForABlock", "race", "values"}, 1, 64, WarpBarrierForABlock,
              64);
}

// All have read when one writes, but only by luck: a shuffle does not order memory.
__global__ void WriteAfterOthersRead(float* x) {
  const float first = x[0] + __shfl_xor_sync(0xffffffff, x[0], 1);
  if (threadIdx.x == 5) x[0] = first;
}
TEST(WrongKernels, WriteAfterOthersRead) {
  ExpectFault(cudaErrorLaunchFailure,
              {"WriteAfterOthersRead", "race", "writes 4 bytes", "reads with nothing"}, 1, 32,
              WriteAfterOthersRead, 1);
}

// The writer comes after the readers of its own warp, not after those of the other.
__global__ void WriteAfterAnotherWarpReads(float* x) {
  const float first = x[0];
  __syncwarp();
  if (threadIdx.x == 5) x[0] = first + 1;
}
TEST(WrongKernels, WriteAfterAnotherWarpReads) {
  ExpectFault(cudaErrorLaunchFailure, {"WriteAfterAnotherWarpReads", "race"}, 1, 64,
              WriteAfterAnotherWarpReads, 1);
}

// A shuffle does not order memory.
__global__ void ShuffleForABarrier(float* x) {
  __shared__ float values[32];
  values[threadIdx.x] = 0;
  __syncwarp();
  values[threadIdx.x] = __shfl_xor_sync(0xffffffff, x[threadIdx.x], 1);
  x[threadIdx.x] = __shfl_xor_sync(0xffffffff, values[threadIdx.x ^ 2], 1);
}
TEST(WrongKernels, ShuffleInPlaceOfABarrier) {
  ExpectFault(cudaErrorLaunchFailure, {"ShuffleForABarrier", "race", "values"}, 1, 32, ShuffleForABarrier,
              32);
}

__global__ void WritePastTheEnd(float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) x[i] = 2;
}
TEST(WrongKernels, WriteOneElementPastTheEnd) {
  ExpectFault(cudaErrorIllegalAddress,
              {"WritePastTheEnd", "writes 4 bytes", "0 bytes past the end", "400 bytes"}, 2, 64,
              WritePastTheEnd, 100, 100);
}

__global__ void ReadBeforeTheBegin(float* x) {
  const float before = x[static_cast<int>(threadIdx.x) - 1];
  if (before == 77) x[threadIdx.x] = 1;
}
TEST(WrongKernels, ReadOneElementBeforeTheBegin) {
  ExpectFault(cudaErrorIllegalAddress, {"ReadBeforeTheBegin", "reads 4 bytes", "4 bytes before"}, 1, 64,
              ReadBeforeTheBegin, 64);
}

__global__ void VectorPastTheEnd(float* x) {
  float4* vectors = reinterpret_cast<float4*>(x);
  float4 v = vectors[threadIdx.x];
  v.x += 1;
  vectors[threadIdx.x] = v;
}
TEST(WrongKernels, VectorAcrossTheEnd) {
  ExpectFault(cudaErrorIllegalAddress, {"VectorPastTheEnd", "past the end"}, 1, 8, VectorPastTheEnd, 30);
}

__global__ void SharedIndexPastTheEnd(float* x) {
  __shared__ float values[64];
  __shared__ float others[64];
  others[threadIdx.x] = x[threadIdx.x];
  values[threadIdx.x + 1] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = values[threadIdx.x] + others[threadIdx.x];
}
TEST(WrongKernels, SharedArrayOneElementPastTheEnd) {
  ExpectFault(cudaErrorIllegalAddress, {"SharedIndexPastTheEnd", "index 64", "wrong_kernels_test.cu"}, 1, 64,
              SharedIndexPastTheEnd, 64);
}

// The same through pointers, whose arrays the compiler does not see.
__device__ __attribute__((noinline)) void Store(float* to, float value) { *to = value; }
__device__ __attribute__((noinline)) float Load(const float* from) { return *from; }

__global__ void SharedPointerPastTheEnd(float* x) {
  __shared__ float values[64];
  __shared__ float others[64];
  float* to = values;
  Store(others + threadIdx.x, 0);
  Store(to + threadIdx.x + 1, x[threadIdx.x]);
}
TEST(WrongKernels, SharedPointerOneElementPastTheEnd) {
  ExpectFault(cudaErrorIllegalAddress,
              {"SharedPointerPastTheEnd", "writes 4 bytes", "byte 256", "values", "256 bytes"}, 1, 64,
              SharedPointerPastTheEnd, 64);
}

__global__ void SharedPointerBeforeTheBegin(float* x) {
  __shared__ float values[64];
  Store(values + threadIdx.x, 1);
  __syncthreads();
  x[threadIdx.x] = Load(values + threadIdx.x - 1);
}
TEST(WrongKernels, SharedPointerOneElementBeforeTheBegin) {
  ExpectFault(cudaErrorIllegalAddress, {"SharedPointerBeforeTheBegin", "reads 4 bytes"}, 1, 64,
              SharedPointerBeforeTheBegin, 64);
}

__global__ void MisalignedVector(float* x) {
  reinterpret_cast<float4*>(x + 1)[threadIdx.x] = float4{1, 2, 3, 4};
}
TEST(WrongKernels, MisalignedVector) {
  ExpectFault(cudaErrorMisalignedAddress, {"MisalignedVector", "no multiple of 16", "wrong_kernels_test.cu"},
              1, 4, MisalignedVector, 64);
}

__global__ void TwoBlocksWriteOneAddress(float* x) {
  if (threadIdx.x == 0) x[7] = static_cast<float>(blockIdx.x);
}
TEST(WrongKernels, TwoBlocksWriteOneAddress) {
  ExpectFault(cudaErrorLaunchFailure, {"TwoBlocksWriteOneAddress", "race", "byte 28", "block"}, 3, 32,
              TwoBlocksWriteOneAddress, 8);
}

__global__ void TwoThreadsAddWithoutAtomics(float* x) { x[threadIdx.x / 2] += 1; }
TEST(WrongKernels, TwoThreadsAddWithoutAtomics) {
  ExpectFault(cudaErrorLaunchFailure, {"TwoThreadsAddWithoutAtomics", "race"}, 1, 32,
              TwoThreadsAddWithoutAtomics, 16);
}

__global__ void AtomicAndPlain(float* x) {
  if (threadIdx.x < 16) atomicAdd(&x[0], 1.0f);
  if (threadIdx.x == 20) x[0] = 5;
}
TEST(WrongKernels, AtomicAndPlainAccess) {
  ExpectFault(cudaErrorLaunchFailure, {"AtomicAndPlain", "race"}, 1, 32, AtomicAndPlain, 1);
}

__global__ void BarrierOfSome(float* x) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  x[threadIdx.x] = 1;
}
TEST(WrongKernels, BarrierThatSomeThreadsPass) {
  ExpectFault(cudaErrorLaunchFailure, {"BarrierOfSome", "__syncthreads", "has exited"}, 1, 64, BarrierOfSome,
              64);
}

__global__ void TwoBarriers(float* x) {
  if (threadIdx.x < 32) {
    __syncthreads();
    x[threadIdx.x] = 1;
  } else {
    x[threadIdx.x] = 2;
    __syncthreads();
  }
}
TEST(WrongKernels, DivergentBarrier) {
  ExpectFault(cudaErrorLaunchFailure, {"TwoBarriers", "divergent barrier", "wrong_kernels_test.cu"}, 1, 64,
              TwoBarriers, 64);
}

__global__ void ShuffleWithAbsentLane(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_down_sync(0x0000ffff, x[threadIdx.x], 8);
}
TEST(WrongKernels, ShuffleReadsAnAbsentLane) {
  ExpectFault(cudaErrorLaunchFailure, {"ShuffleWithAbsentLane", "takes no part"}, 1, 32,
              ShuffleWithAbsentLane, 32);
}

__global__ void ShuffleWithExitedLane(float* x) {
  if (threadIdx.x == 31) return;
  x[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 0);
}
TEST(WrongKernels, ShuffleWaitsForAnExitedLane) {
  ExpectFault(cudaErrorLaunchFailure, {"ShuffleWithExitedLane", "waits for the lanes ffffffff", "has exited"},
              1, 32, ShuffleWithExitedLane, 32);
}

// A block of 16 threads has no lane 16 to read.
TEST(WrongKernels, ShuffleReadsALaneThatTheBlockDoesNotHave) {
  ExpectFault(
      cudaErrorLaunchFailure, {"takes no part"}, 1, 16,
      +[](float* x) { x[threadIdx.x] += __shfl_down_sync(0xffffffff, x[threadIdx.x], 16); }, 16);
}

__global__ void ShuffleOutsideOfItsMask(float* x) {
  x[threadIdx.x] = __shfl_sync(0x0000ffff, x[threadIdx.x], 0);
}
TEST(WrongKernels, LaneOutsideOfItsOwnMask) {
  ExpectFault(cudaErrorLaunchFailure, {"ShuffleOutsideOfItsMask", "not in the mask"}, 1, 32,
              ShuffleOutsideOfItsMask, 32);
}

__global__ void TwoMasks(float* x) {
  x[threadIdx.x] = __shfl_xor_sync(threadIdx.x < 16 ? 0xffffffff : 0xffff0000, x[threadIdx.x], 1);
}
TEST(WrongKernels, MasksThatDisagree) {
  ExpectFault(cudaErrorLaunchFailure, {"TwoMasks", "waits for the lanes ffffffff"}, 1, 32, TwoMasks, 32);
}

// No rule is broken, but a sum is lost where another thread comes between: threads meet in atomic functions.
__global__ void CompareAndSwapOnce(float* x) {
  const float old = atomicAdd(x, 0.0f);
  atomicCAS(reinterpret_cast<unsigned*>(x), __float_as_uint(old), __float_as_uint(old + 1));
}
TEST(WrongKernels, CompareAndSwapWithoutTryingAgain) {
  int wrong = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    DeviceArray<float> sum({0.0f});
    ASSERT_TRUE(pipec::Launch(CompareAndSwapOnce, 1, 64, nullptr, sum.data()).ok());
    wrong += sum.Read() != std::vector<float>{64.0f};
  }
  EXPECT_GE(wrong, 95);
}

__global__ void SharedMemoryNeverWritten(float* x) {
  __shared__ float values[64];
  if (threadIdx.x < 63) values[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = values[threadIdx.x];
}
TEST(WrongKernels, SharedMemoryNeverWritten) {
  ExpectFault(cudaErrorLaunchFailure,
              {"SharedMemoryNeverWritten", "byte 252", "no thread of its block has written"}, 1, 64,
              SharedMemoryNeverWritten, 64);
}

__global__ void ReadHostMemory(float* x, const float* host) { x[threadIdx.x] = host[threadIdx.x]; }
TEST(WrongKernels, HostMemory) {
  const std::vector<float> host(32, 1.0f);
  ExpectFault(cudaErrorIllegalAddress, {"ReadHostMemory", "no memory of the device"}, 1, 32, ReadHostMemory,
              32, host.data());
}

// Copies of a known size are accesses as well, whatever they are written as.
struct Eight {
  float values[8];
};
__global__ void StructPastTheEnd(float* x) {
  const Eight copy = *reinterpret_cast<const Eight*>(x + threadIdx.x);
  x[0] = copy.values[7];
}
TEST(WrongKernels, StructAcrossTheEnd) {
  ExpectFault(cudaErrorIllegalAddress, {"StructPastTheEnd", "reads 32 bytes", "across the end"}, 1, 1,
              StructPastTheEnd, 7);
}

__global__ void MemcpyPastTheEnd(float* x, int count) {
  float value;
  memcpy(&value, x + count, sizeof(float));
  x[0] = value;
}
TEST(WrongKernels, MemcpyPastTheEnd) {
  ExpectFault(cudaErrorIllegalAddress, {"MemcpyPastTheEnd", "reads 4 bytes", "past the end"}, 1, 1,
              MemcpyPastTheEnd, 7, 7);
}

__global__ void DivideByZero(float* x, int divisor) {
  x[threadIdx.x] = static_cast<float>(7 % (divisor - 3));
}
TEST(WrongKernels, DivisionByZero) {
  ExpectFault(cudaErrorLaunchFailure, {"DivideByZero", "division by zero", "wrong_kernels_test.cu"}, 1, 1,
              DivideByZero, 1, 3);
}

// The threads of a block do not run at once: one that waits for another without a barrier may wait for ever.
__global__ void WaitForAnother(float* x) {
  if (threadIdx.x == 0) {
    while (*static_cast<volatile float*>(x + 1) == 1) continue;
  }
  if (threadIdx.x == 1) x[0] = 2;
}
TEST(WrongKernels, AThreadThatDoesNotEnd) {
  SetSeed(0);
  DeviceArray<float> data({1, 1});
  ASSERT_TRUE(pipec::Launch(WaitForAnother, 1, 32, nullptr, data.data()).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchTimeout);
  EXPECT_THAT(TakeReports(), testing::ElementsAre(HasSubstr("does not end")));
  SetSeed(0);
}

// A step into the neighbouring buffer of one allocation is found where the test says what the operands are.
__global__ void Fill(float* x, int count) {
  if (threadIdx.x < count) x[threadIdx.x] = 1;
}
TEST(WrongKernels, OutsideOfItsOperands) {
  SetSeed(0);
  DeviceArray<float> arena(std::vector<float>(64, 0));
  {
    const OperandRanges operands({{arena.data(), 32 * sizeof(float), true}});
    ASSERT_TRUE(pipec::Launch(Fill, 1, 64, nullptr, arena.data(), 32).ok());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_TRUE(pipec::Launch(Fill, 1, 64, nullptr, arena.data(), 33).ok());
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(TakeReports(), testing::ElementsAre(HasSubstr("outside the kernel's operands")));
  SetSeed(1);
  const OperandRanges read_only({{arena.data(), 64 * sizeof(float), false}});
  ASSERT_TRUE(pipec::Launch(Fill, 1, 64, nullptr, arena.data(), 1).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  SetSeed(0);
}

}  // namespace
}  // namespace cuda_emulation
