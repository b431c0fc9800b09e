// Which thread of which block runs.
#pragma once

#include <vector_types.h>

namespace cuda_emulation {

uint3 ThreadIndex() noexcept;
uint3 BlockIndex() noexcept;
dim3 BlockSize() noexcept;
dim3 GridSize() noexcept;

}  // namespace cuda_emulation

#define threadIdx (::cuda_emulation::ThreadIndex())
#define blockIdx (::cuda_emulation::BlockIndex())
#define blockDim (::cuda_emulation::BlockSize())
#define gridDim (::cuda_emulation::GridSize())
constexpr int warpSize = 32;
