// Device memory for tests: filled from a vector, read back as one.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

namespace cuda_emulation {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  // What lies there once all work of the device is done; empty if that went wrong.
  std::vector<T> Read() {
    std::vector<T> values(size_);
    if (cudaDeviceSynchronize() != cudaSuccess) return {};
    if (cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) return {};
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

}  // namespace cuda_emulation
