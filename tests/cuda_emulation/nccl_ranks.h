// Three ranks of one communicator of the double of NCCL, for its tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"
#include "tests/cuda_emulation/nccl_control.h"

namespace cuda_emulation {

// Until the communicator has nothing in progress.
inline ncclResult_t Poll(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (int tries = 0; tries < 200 && state == ncclInProgress; ++tries) {
    if (const ncclResult_t result = ncclCommGetAsyncError(comm, &state); result != ncclSuccess) return result;
  }
  return state;
}

inline ncclConfig_t Config(int blocking = 0) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return config;
}

// Ranks on a device each, with a stream each, all driven by one thread.
class NcclRanks : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  NcclRanks() { Begin(0); }
  void Begin(uint64_t seed) {
    End();
    SetDevices(kRanks);
    SetSeed(seed);
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream_[r], cudaStreamNonBlocking), cudaSuccess);
    }
    comm_ = Make();
  }
  std::vector<ncclComm_t> Make() {
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    std::vector<ncclComm_t> made(kRanks);
    ncclConfig_t config = Config();
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      EXPECT_EQ(ncclCommInitRankConfig(&made[r], kRanks, id, r, &config), ncclInProgress);
    }
    for (ncclComm_t comm : made) EXPECT_EQ(Poll(comm), ncclSuccess);
    return made;
  }
  void End() {
    SetPatience(std::chrono::seconds(20));
    for (ncclComm_t comm : comm_) ncclCommAbort(comm);
    for (int r = 0; r < kRanks && !comm_.empty(); ++r) cudaStreamDestroy(stream_[r]);
    comm_.clear();
    TakeReports();
    SetSeed(0);
    cudaSetDevice(0);
  }
  ~NcclRanks() override {
    End();
    SetDevices(1);
  }

  ncclResult_t Send(int from, int to, DeviceArray<int>& data, size_t count) {
    return ncclSend(data.data(), count, ncclInt32, to, comm_[from], stream_[from]);
  }
  ncclResult_t Receive(int from, int to, DeviceArray<int>& data, size_t count) {
    return ncclRecv(data.data(), count, ncclInt32, from, comm_[to], stream_[to]);
  }
  std::unique_ptr<DeviceArray<int>> On(int rank, const std::vector<int>& values) {
    cudaSetDevice(rank);
    return std::make_unique<DeviceArray<int>>(values);
  }
  std::vector<int> ReadOn(int rank, DeviceArray<int>& array) {
    cudaSetDevice(rank);
    return array.Read();
  }
  // The routes that a test captures, or uses one end after the other.
  void Connect(const std::vector<std::pair<int, int>>& routes) {
    auto dust = On(0, {0});
    for (const auto& [from, to] : routes) {
      EXPECT_EQ(Send(from, to, *dust, 0), ncclInProgress);
      EXPECT_EQ(Receive(from, to, *dust, 0), ncclInProgress);
      EXPECT_EQ(Poll(comm_[from]), ncclSuccess);
      EXPECT_EQ(Poll(comm_[to]), ncclSuccess);
    }
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(cudaStreamSynchronize(stream_[r]), cudaSuccess);
  }

  cudaStream_t stream_[kRanks];
  std::vector<ncclComm_t> comm_;
};

}  // namespace cuda_emulation
