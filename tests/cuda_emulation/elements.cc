#include "tests/cuda_emulation/elements.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

namespace cuda_emulation {
namespace {

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

size_t ElementBytes(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return 4;
    case CUDA_R_64F:
      return 8;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    default:
      return 0;
  }
}

double GetElement(cudaDataType_t type, const void* array, int64_t i) {
  const std::byte* const at = static_cast<const std::byte*>(array) + i * ElementBytes(type);
  if (type == CUDA_R_32F) return Load<float>(at);
  if (type == CUDA_R_64F) return Load<double>(at);
  return type == CUDA_R_16F ? __half2float(Load<__half>(at)) : __bfloat162float(Load<__nv_bfloat16>(at));
}

void PutElement(cudaDataType_t type, void* array, int64_t i, double value) {
  std::byte* const at = static_cast<std::byte*>(array) + i * ElementBytes(type);
  const auto put = [at](auto rounded) { std::memcpy(at, &rounded, sizeof rounded); };
  if (type == CUDA_R_32F) return put(static_cast<float>(value));
  if (type == CUDA_R_64F) return put(value);
  if (type == CUDA_R_16F) return put(__float2half(static_cast<float>(value)));
  put(__float2bfloat16(static_cast<float>(value)));
}

}  // namespace cuda_emulation
