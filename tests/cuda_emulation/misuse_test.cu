// What CUDA forbids is refused with CUDA's own error; several devices keep their memory, streams and events apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::HasSubstr;

__global__ void AddOne(int* x) { x[threadIdx.x] += 1; }

class Misuse : public testing::Test {
 protected:
  Misuse() { SetSeed(0); }
  ~Misuse() override {
    cudaSetDevice(0);
    SetDevices(1);
    SetSeed(0);
  }
};

TEST_F(Misuse, SizesOfALaunch) {
  DeviceArray<int> x({0});
  for (const dim3 block : {dim3(0), dim3(1025), dim3(32, 64), dim3(1, 1, 65)}) {
    const absl::Status status = pipec::Launch(AddOne, 1, block, nullptr, x.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("cudaErrorInvalidConfiguration"));
  }
  EXPECT_FALSE(pipec::Launch(AddOne, dim3(0), 1, nullptr, x.data()).ok());
  EXPECT_FALSE(pipec::Launch(AddOne, dim3(1, 65536), 1, nullptr, x.data()).ok());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(x.Read(), std::vector<int>{0});
}

TEST_F(Misuse, Memory) {
  DeviceArray<int> x({1, 2, 3, 4});
  int host[4] = {};
  EXPECT_EQ(cudaMemcpy(host, x.data(), sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, x.data(), sizeof host, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(host, 0, sizeof host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data() + 1, x.data(), 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data() + 2, x.data(), 8, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(x.Read(), (std::vector<int>{1, 2, 1, 2}));
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(x.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(x.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  void* much = nullptr;
  EXPECT_EQ(cudaMalloc(&much, size_t{1} << 40), cudaErrorMemoryAllocation);
}

// Whether CUDA waits in cudaFree is its own affair. Other work may be under way, but not with this memory.
TEST_F(Misuse, MemoryFreedWhileWorkIsEnqueued) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  int seen = 0;
  for (int seed = 0; seed < 40; ++seed) {
    SetSeed(seed);
    int *x = nullptr, *y = nullptr, *z = nullptr;
    for (int** memory : {&x, &y}) ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(memory), 4), cudaSuccess);
    ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, stream, x).ok());
    ASSERT_EQ(cudaFree(y), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, stream, x).ok());
    ASSERT_EQ(cudaFree(x), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&z), 4), cudaSuccess);  // lies elsewhere
    if (cudaStreamSynchronize(stream) == cudaErrorIllegalAddress) {
      ++seen;
      EXPECT_THAT(TakeReports(),
                  testing::ElementsAre(HasSubstr("device memory of 4 bytes that has been freed")));
    }
    cudaFree(z);
  }
  EXPECT_GE(seen, 20);  // in the others the kernel ran before
  SetSeed(0);
  cudaStreamDestroy(stream);
}

TEST_F(Misuse, FreshMemoryIsNotZero) {
  float* x = nullptr;
  float value = 0;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x), sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(&value, x, sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_NE(value, value);
  ASSERT_EQ(cudaFree(x), cudaSuccess);
}

TEST_F(Misuse, UseAfterFree) {
  int* x = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x), 4), cudaSuccess);
  ASSERT_EQ(cudaFree(x), cudaSuccess);
  ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, nullptr, x).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_F(Misuse, HandlesThatLiveNoMore) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(TakeReports().size(), 4u);
}

void CallCuda(void* error) { *static_cast<cudaError_t*>(error) = cudaDeviceSynchronize(); }

TEST_F(Misuse, AHostFunctionCallsCuda) {
  cudaError_t error = cudaSuccess;
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, CallCuda, &error), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

TEST_F(Misuse, NoDevice) {
  SetDevices(0);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  const absl::Status status = pipec::CudaStatus(cudaSetDevice(0), "cudaSetDevice");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cudaSetDevice: no device is there (cudaErrorNoDevice)"));
}

TEST_F(Misuse, DevicesKeepApart) {
  SetDevices(2, size_t{16} << 30, /*can_be_peers=*/true);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  DeviceArray<int> x({0});
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  cudaStream_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  DeviceArray<int> y({5});

  EXPECT_EQ(cudaEventRecord(event, second), cudaErrorInvalidResourceHandle);
  EXPECT_FALSE(pipec::Launch(AddOne, 1, 1, first, x.data()).ok());
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);  // events order streams of all devices
  EXPECT_EQ(cudaMemcpyPeerAsync(x.data(), 1, y.data(), 1, sizeof(int), second), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMemcpyPeerAsync(x.data(), 0, y.data(), 1, sizeof(int), second), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(x.data(), y.data(), sizeof(int), cudaMemcpyDeviceToDevice, second), cudaSuccess);
  EXPECT_EQ(CopiesByHost(), 2);
  EXPECT_EQ(x.Read(), std::vector<int>{5});

  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  ASSERT_EQ(cudaMemcpyAsync(x.data(), y.data(), sizeof(int), cudaMemcpyDeviceToDevice, second), cudaSuccess);
  EXPECT_EQ(CopiesByHost(), 2);
  ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, second, x.data()).ok());  // device 1 works in device 0's memory
  EXPECT_EQ(x.Read(), std::vector<int>{6});

  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, first, y.data()).ok());  // the other way it may not
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(TakeReports().back(), HasSubstr("no peer access"));
  EXPECT_EQ(cudaMemset(x.data(), 0, 4), cudaErrorIllegalAddress);
  SetSeed(0);
  cudaEventDestroy(event);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

// A kernel's fault breaks its own device alone.
TEST_F(Misuse, TheOtherDeviceGoesOn) {
  for (int seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    SetDevices(2);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    DeviceArray<int> y({5});
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, nullptr, static_cast<int*>(nullptr)).ok());
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_TRUE(pipec::Launch(AddOne, 1, 1, nullptr, y.data()).ok());
    EXPECT_EQ(y.Read(), std::vector<int>{6});
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_THAT(TakeReports(), testing::ElementsAre(HasSubstr("AddOne")));
  }
}

}  // namespace
}  // namespace cuda_emulation
