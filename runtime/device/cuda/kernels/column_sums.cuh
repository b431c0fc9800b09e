// Sums over the rows of a matrix (rows, columns), one or two of each column, of which the rows are many: gradients of
// biases and scales. Blocks share the rows; what they give is added in float64, one after the other, so that the order
// of every sum is fixed by the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/channels.cuh"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {

// How many blocks share the rows: as many as keep a large GPU busy, if each of a block's warps then has 16 rows.
inline int64_t ColumnSplits(int64_t rows, int64_t columns) {
  constexpr int64_t kWarps = kThreads / 32, kBlocks = 1024;
  const int64_t most = kBlocks / std::max<int64_t>((columns + 255) / 256, 1);
  return std::clamp<int64_t>(rows / (16 * kWarps), 1, std::max<int64_t>(most, 1));
}
template <int kSums>
int64_t ColumnSumsBytes(int64_t rows, int64_t columns) {
  return ColumnSplits(rows, columns) * kSums * columns * static_cast<int64_t>(sizeof(double));
}

// partial[(split * kSums + k) * columns + column]: what terms.Add<kLanes>(row, column, sums) adds to sums[k] of kLanes
// neighbouring columns in the split's rows. A warp has 32 * kLanes columns and every kThreads / 32-th row.
template <int kLanes, int kSums, typename C, typename Terms>
__global__ void __launch_bounds__(kThreads, 1)
    SumColumns(const Terms terms, int64_t rows, int64_t columns, double* partial) {
  __shared__ C parts[kThreads];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first = rows * blockIdx.x / gridDim.x, last = rows * (blockIdx.x + 1) / gridDim.x;
  for (int64_t begin = int64_t{blockIdx.y} * 32 * kLanes; begin < columns;
       begin += int64_t{gridDim.y} * 32 * kLanes) {
    const int64_t column = begin + lane * kLanes;
    C sums[kSums][kLanes] = {};
    if (column < columns) {
#pragma unroll 4
      for (int64_t row = first + warp; row < last; row += kThreads / 32)
        terms.template Add<kLanes>(row, column, sums);
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        parts[threadIdx.x] = sums[k][i];
        __syncthreads();
        if (warp == 0 && column < columns) {
          double total = static_cast<double>(parts[lane]);
          for (int other = 1; other < kThreads / 32; ++other)
            total += static_cast<double>(parts[other * 32 + lane]);
          partial[(int64_t{blockIdx.x} * kSums + k) * columns + column + i] = total;
        }
        __syncthreads();
      }
    }
  }
}

// finish(column, totals), a thread a column.
template <int kSums, typename Finish>
__global__ void __launch_bounds__(kThreads)
    FinishColumns(const Finish finish, int64_t columns, int64_t splits, const double* partial) {
  for (int64_t column = FirstItem(); column < columns; column += ItemStride()) {
    double totals[kSums] = {};
    for (int64_t split = 0; split < splits; ++split) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) totals[k] += partial[(split * kSums + k) * columns + column];
    }
    finish(column, totals);
  }
}

// Of elements of T. `wide`: what the terms read lies at addresses that are aligned to 16 bytes. `workspace`:
// ColumnSumsBytes.
template <typename T, int kSums, typename Terms, typename Finish>
absl::Status LaunchColumnSums(cudaStream_t stream, const Terms& terms, const Finish& finish, int64_t rows,
                              int64_t columns, bool wide, void* workspace) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const bool together = wide && columns % kSize == 0;
  const int64_t splits = ColumnSplits(rows, columns), own = 32 * (together ? kSize : 1);
  const dim3 blocks(static_cast<unsigned>(splits),
                    static_cast<unsigned>(std::min<int64_t>((columns + own - 1) / own, 1 << 15)));
  auto* const partial = static_cast<double*>(workspace);
  RETURN_IF_ERROR(Launch(together ? SumColumns<kSize, kSums, C, Terms> : SumColumns<1, kSums, C, Terms>, blocks,
                         kThreads, stream, terms, rows, columns, partial));
  return Launch(FinishColumns<kSums, Finish>, BlocksFor(columns), kThreads, stream, finish, columns, splits,
                partial);
}

}  // namespace pipec::cuda
