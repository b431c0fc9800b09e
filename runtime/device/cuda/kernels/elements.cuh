// What the kernels of this folder have in common on the GPU: elements in the type they are computed in, 16 bytes at
// once, sums over the threads of a block, notes of faults.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "runtime/device/cuda/fault.h"

namespace pipec::cuda {

// Threads of a block, where nothing else is said. `__launch_bounds__(kThreads, 1)` where ptxas would else spill a
// register so that one block more fits.
inline constexpr int kThreads = 256;

// 16-bit floats are computed in float32 and rounded once.
template <typename T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<__half> {
  using type = float;
};
template <>
struct ComputeType<__nv_bfloat16> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeType<T>::type;

template <typename T>
__device__ __forceinline__ T Widen(T x) {
  return x;
}
__device__ __forceinline__ float Widen(__half x) { return __half2float(x); }
__device__ __forceinline__ float Widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
__device__ __forceinline__ T Narrow(Compute<T> x) {
  return x;
}
template <>
__device__ __forceinline__ __half Narrow<__half>(float x) {
  return __float2half(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 Narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16(x);
}

// At most 16 bytes, as a rule just those, which one instruction loads or stores.
template <typename T, int kElements = 16 / sizeof(T)>
struct alignas(sizeof(T) * kElements) Vector {
  static constexpr int kSize = kElements;
  T values[kSize];
};
template <int kSize, typename T>
__device__ __forceinline__ Vector<T, kSize> LoadElements(const T* at) {
  return *reinterpret_cast<const Vector<T, kSize>*>(at);
}
template <typename T>
__device__ __forceinline__ Vector<T> LoadVector(const T* at) {
  return LoadElements<Vector<T>::kSize>(at);
}
template <typename T, int kSize>
__device__ __forceinline__ void StoreVector(T* at, const Vector<T, kSize>& vector) {
  *reinterpret_cast<Vector<T, kSize>*>(at) = vector;
}
inline bool Aligned(const void* address, int bytes = 16) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}
// Elements of these types that are taken at once: 16 bytes of the widest.
template <typename... Ts>
inline constexpr int kTogether = 16 / std::max({sizeof(Ts)...});

// The grid for so much work, an item a thread; threads then stride over the rest.
inline dim3 BlocksFor(int64_t work) {
  return dim3(static_cast<unsigned>(std::clamp<int64_t>((work + kThreads - 1) / kThreads, 1, 1 << 16)));
}
__device__ __forceinline__ int64_t FirstItem() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t ItemStride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

struct SumOf {
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return a + b;
  }
};
// NaN wins in neither: callers that meet one give it on themselves.
struct MinOf {
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return b < a ? b : a;
  }
};
struct MaxOf {
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return a < b ? b : a;
  }
};

// The fold of all threads' values, in all threads: of one warp (kSize 32) or of a block of kSize threads, always in
// the same order. All threads must come here; it may be called again at once.
template <typename Op, int kSize, typename T>
__device__ __forceinline__ T FoldThreads(T value, T first) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = Op::Combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  if constexpr (kSize > 32) {
    __shared__ T partial[kSize / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < kSize / 32 ? partial[threadIdx.x % 32] : first;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      value = Op::Combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
  }
  return value;
}

// The first note stays.
__device__ __forceinline__ void LeaveNote(const FaultSite& site, int64_t value, int64_t position) {
  if (atomicCAS(&site.note->site, 0, site.site) != 0) return;
  site.note->value = value;
  site.note->position = position;
}

}  // namespace pipec::cuda
