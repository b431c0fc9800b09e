// CUB's device-wide algorithms, as plain functions: what one block, or one thread a row, would take too long for.
// NVIDIA's compiler alone reads CUB, so the bodies stand in ../cub; the emulation has its own
// (tests/cuda_emulation/device_wide.cc).
//
// Each gives the same bits from run to run on the same kind of GPU. CUB's scans of floats do not (CUB's
// documentation of DeviceScan), so there is none here. A function named ...Bytes asks, at load, for how much
// scratch the other one needs on the current device; scratch is aligned to 256 bytes, as memory of cudaMalloc is,
// and operands do not overlap.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"

namespace pipec::cuda {

enum class Terms { kElements, kSquares };

// The sum of n floats, or of their squares, in float64.
cudaError_t DeviceSumBytes(Terms what, DType dtype, int64_t n, size_t* bytes);
cudaError_t DeviceSum(Terms what, DType dtype, const void* x, int64_t n, double* total, void* scratch,
                      size_t bytes, cudaStream_t stream);

// Sorts n keys by their last `bits`, least first, and moves each key's value along; equal keys stay in their order.
cudaError_t DeviceSortBytes(int64_t n, int bits, size_t* bytes);
cudaError_t DeviceSort(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values,
                       int32_t* sorted_values, int64_t n, int bits, void* scratch, size_t bytes,
                       cudaStream_t stream);

}  // namespace pipec::cuda
