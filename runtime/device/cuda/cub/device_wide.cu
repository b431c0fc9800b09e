#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

#include "runtime/device/cuda/kernels/device_wide.h"

namespace pipec::cuda {
namespace {

template <bool kSquare>
struct AsDouble {
  __host__ __device__ static double Widen(float x) { return static_cast<double>(x); }
  __host__ __device__ static double Widen(double x) { return x; }
  __host__ __device__ static double Widen(__half x) { return static_cast<double>(__half2float(x)); }
  __host__ __device__ static double Widen(__nv_bfloat16 x) {
    return static_cast<double>(__bfloat162float(x));
  }
  template <typename T>
  __host__ __device__ double operator()(T x) const {
    const double wide = Widen(x);
    return kSquare ? wide * wide : wide;
  }
};

template <typename T>
cudaError_t SumOf(Terms what, const void* x, int64_t n, double* total, void* scratch, size_t& bytes,
                  cudaStream_t stream) {
  const auto sum = [&](auto transform) {
    return cub::DeviceReduce::TransformReduce(scratch, bytes, static_cast<const T*>(x), total, n,
                                              ::cuda::std::plus<>(), transform, 0.0, stream);
  };
  return what == Terms::kSquares ? sum(AsDouble<true>()) : sum(AsDouble<false>());
}

cudaError_t SumOfType(Terms what, DType dtype, const void* x, int64_t n, double* total, void* scratch,
                      size_t& bytes, cudaStream_t stream) {
  switch (dtype) {
    case DType::kFloat32:
      return SumOf<float>(what, x, n, total, scratch, bytes, stream);
    case DType::kFloat64:
      return SumOf<double>(what, x, n, total, scratch, bytes, stream);
    case DType::kFloat16:
      return SumOf<__half>(what, x, n, total, scratch, bytes, stream);
    case DType::kBFloat16:
      return SumOf<__nv_bfloat16>(what, x, n, total, scratch, bytes, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t DeviceSumBytes(Terms what, DType dtype, int64_t n, size_t* bytes) {
  return SumOfType(what, dtype, nullptr, n, nullptr, nullptr, *bytes, nullptr);
}

cudaError_t DeviceSum(Terms what, DType dtype, const void* x, int64_t n, double* total, void* scratch,
                      size_t bytes, cudaStream_t stream) {
  return SumOfType(what, dtype, x, n, total, scratch, bytes, stream);
}

cudaError_t DeviceSortBytes(int64_t n, int bits, size_t* bytes) {
  return cub::DeviceRadixSort::SortPairs(
      nullptr, *bytes, static_cast<const uint64_t*>(nullptr), static_cast<uint64_t*>(nullptr),
      static_cast<const int32_t*>(nullptr), static_cast<int32_t*>(nullptr), n, 0, bits);
}

cudaError_t DeviceSort(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values,
                       int32_t* sorted_values, int64_t n, int bits, void* scratch, size_t bytes,
                       cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values, n, 0, bits,
                                         stream);
}

}  // namespace pipec::cuda
