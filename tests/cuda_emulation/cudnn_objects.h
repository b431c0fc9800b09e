// What the doubles of cuDNN keep behind its handles.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/cuda_emulation/call.h"

namespace cuda_emulation {

struct DnnHandle {
  int device;
  cudaStream_t stream = nullptr;
};

// A tensor or a filter; fully packed, the last axis next to each other.
struct DnnTensor {
  cudaDataType_t type = CUDA_R_8I;  // as made: none
  int rank = 0;
  std::array<int64_t, 8> dims{};

  int64_t elements() const;
  size_t bytes() const;
};

struct DnnConvolution {
  int rank = 0;  // spatial axes; 0: not set
  std::array<int64_t, 3> padding{}, strides{}, dilations{};
  cudnnConvolutionMode_t mode{};
  cudaDataType_t compute{};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int64_t groups = 1;
};

template <typename T>
T& DnnObject(const void* handle) {
  return *static_cast<T*>(const_cast<void*>(handle));
}

cudnnStatus_t DnnStatusOf(cudaError_t error);
// CUDA_R_8I: a type that the doubles do not compute in.
cudaDataType_t DnnTypeOf(cudnnDataType_t type);

template <typename Body>
cudnnStatus_t DnnCall(const char* name, const Body& body) {
  return DnnStatusOf(Call(name, [&](Machine& machine, auto&) { return body(machine); }));
}

// Counted until it is destroyed.
template <typename Handle, typename T>
cudaError_t DnnAdd(Machine& machine, Handle* handle, T* made) {
  machine.dnn_objects.insert(made);
  *handle = reinterpret_cast<Handle>(made);
  return cudaSuccess;
}

template <typename T, typename Handle>
cudnnStatus_t DnnCreate(const char* name, Handle* handle) {
  return DnnCall(name, [&](Machine& machine) { return DnnAdd(machine, handle, new T); });
}

template <typename T>
cudnnStatus_t DnnDestroy(const char* name, void* handle) {
  return DnnStatusOf(ReleaseCall(name, [&](Machine& machine, bool) {
    if (machine.dnn_objects.erase(handle) == 0)
      return machine.Refuse(cudaErrorInvalidResourceHandle, std::string(name) + ": of what lives no more");
    delete static_cast<T*>(handle);
    return cudaSuccess;
  }));
}

}  // namespace cuda_emulation
