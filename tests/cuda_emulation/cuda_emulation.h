// Included ahead of every .cu file that g++ compiles for the emulation: CUDA's language for kernels, on top of the
// toolkit's own headers. What is missing here does not compile, which is the point: see the README for the subset.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/cuda_emulation/device_atomics.h"
#include "tests/cuda_emulation/device_index.h"
#include "tests/cuda_emulation/device_launch.h"
#include "tests/cuda_emulation/device_math.h"
#include "tests/cuda_emulation/device_matrix.h"
#include "tests/cuda_emulation/device_warp.h"

#undef __host__
#undef __device__
#undef __global__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#define __host__
#define __device__
#define __global__
#define __constant__
#define __launch_bounds__(...)

// A block's threads share an array that no other block sees: blocks run one after another, so it is the host thread's.
// The pad before it makes a step outside of it visible (symbols.h).
#define CUDA_EMULATION_JOIN_(a, b) a##b
#define CUDA_EMULATION_JOIN(a, b) CUDA_EMULATION_JOIN_(a, b)
#define __shared__                                                                  \
  static thread_local char CUDA_EMULATION_JOIN(cuda_emulation_pad, __COUNTER__)[64] \
      __attribute__((used, aligned(64)));                                           \
  static thread_local __attribute__((used, aligned(64)))
