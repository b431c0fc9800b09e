#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/sample_kernels.h"

namespace cuda_emulation {
namespace {

constexpr int kThreads = 256;

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(__half x) { return __half2float(x); }
__device__ __forceinline__ float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ __forceinline__ T FromFloat(float x);
template <>
__device__ __forceinline__ float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half FromFloat<__half>(float x) {
  return __float2half(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 FromFloat<__nv_bfloat16>(float x) {
  return __float2bfloat16(x);
}

struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
};

// `vectors` packs, then the elements that fill none.
template <typename T, typename F>
__global__ void __launch_bounds__(kThreads)
    BiasThen(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y, int count, int columns,
             int vectors, F f) {
  constexpr int kSize = Pack<T>::kSize;
  const int stride = gridDim.x * kThreads;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int v = first; v < vectors; v += stride) {
    const Pack<T> in = reinterpret_cast<const Pack<T>*>(x)[v];
    Pack<T> out;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      out.values[i] =
          FromFloat<T>(f(ToFloat(in.values[i]) + ToFloat(__ldg(bias + (v * kSize + i) % columns))));
    }
    reinterpret_cast<Pack<T>*>(y)[v] = out;
  }
  for (int i = vectors * kSize + first; i < count; i += stride) {
    y[i] = FromFloat<T>(f(ToFloat(x[i]) + ToFloat(bias[i % columns])));
  }
}

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The same value in all threads of the block; may be called again at once.
template <typename F>
__device__ float ReduceBlock(float value, float identity, F f) {
  __shared__ float partial[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = f(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < kThreads / 32 ? partial[threadIdx.x % 32] : identity;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = f(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    SoftmaxRow(const T* __restrict__ x, T* __restrict__ y, int columns) {
  const T* row = x + static_cast<int64_t>(blockIdx.x) * columns;
  T* out = y + static_cast<int64_t>(blockIdx.x) * columns;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += kThreads) most = fmaxf(most, ToFloat(row[i]));
  most = ReduceBlock(most, -INFINITY, Max());
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += kThreads) sum += __expf(ToFloat(row[i]) - most);
  sum = ReduceBlock(sum, 0.0f, Sum());
  const float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += kThreads)
    out[i] = FromFloat<T>(__expf(ToFloat(row[i]) - most) * scale);
}

bool Aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

}  // namespace

template <typename T>
absl::Status BiasGelu(cudaStream_t stream, const T* x, const T* bias, T* y, int count, int columns) {
  const int vectors = Aligned(x) && Aligned(y) ? count / Pack<T>::kSize : 0;
  const int work = std::max(vectors, count - vectors * Pack<T>::kSize);
  const unsigned blocks = static_cast<unsigned>(std::clamp((work + kThreads - 1) / kThreads, 1, 1024));
  return pipec::Launch(BiasThen<T, Gelu>, blocks, kThreads, stream, x, bias, y, count, columns, vectors,
                       Gelu());
}

template <typename T>
absl::Status Softmax(cudaStream_t stream, const T* x, T* y, int rows, int columns) {
  return pipec::Launch(SoftmaxRow<T>, rows, kThreads, stream, x, y, columns);
}

template absl::Status BiasGelu(cudaStream_t, const float*, const float*, float*, int, int);
template absl::Status BiasGelu(cudaStream_t, const __half*, const __half*, __half*, int, int);
template absl::Status BiasGelu(cudaStream_t, const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, int,
                               int);
template absl::Status Softmax(cudaStream_t, const float*, float*, int, int);
template absl::Status Softmax(cudaStream_t, const __half*, __half*, int, int);
template absl::Status Softmax(cudaStream_t, const __nv_bfloat16*, __nv_bfloat16*, int, int);

}  // namespace cuda_emulation
