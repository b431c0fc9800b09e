// Tiles of products, as a block of 128 threads computes them: sums[i][j] += sum over k of left[k][i] * right[k][j].
// The sums lie in registers: a thread has 2 x 1 units of a tile's kUnits x kUnits, a unit being the numbers of 16
// bytes. What multiplies: wide_tiles.cuh and tensor_tiles.cuh, which are used alike.
#pragma once

#include "runtime/device/cuda/kernels/elements.cuh"

namespace pipec::cuda {

inline constexpr int kTileThreads = 128;
inline constexpr int kUnits = 16;
inline constexpr int kSlice = 32;  // of what is summed over, so much is loaded at a time

template <typename C>
inline constexpr int kUnit = Vector<C>::kSize;
// Rows, or columns, of a tile: 64 floats, 32 doubles.
template <typename C>
inline constexpr int kSide{kUnits * kUnit<C>};

// Rows of numbers in the GPU's memory, which are zeros outside of it.
template <typename T>
struct Matrix {
  static constexpr int kSize = Vector<T>::kSize;
  const T* at;
  int rows, columns;
  bool wide;  // 16 bytes of a row can be loaded at once

  Matrix(const T* at, int64_t rows, int64_t columns)
      : at(at),
        rows(static_cast<int>(rows)),
        columns(static_cast<int>(columns)),
        wide(columns % kSize == 0 && Aligned(at)) {}

  // Where such matrices lie one after the other.
  __device__ __forceinline__ Matrix OfHead(int64_t head) const {
    Matrix own = *this;
    own.at += head * rows * columns;
    return own;
  }
  // `column`: a multiple of kSize.
  __device__ __forceinline__ Vector<T> Load(int row, int column) const {
    const T* const from = at + int64_t{row} * columns + column;
    if (wide && row < rows && column < columns) return LoadVector(from);
    Vector<T> result;
#pragma unroll
    for (int u = 0; u < kSize; ++u)
      result.values[u] = row < rows && column + u < columns ? from[u] : Narrow<T>(Compute<T>(0));
    return result;
  }
};

// A thread's part of a tile.
template <typename C>
struct TilePart {
  static constexpr int kRows = 2 * kUnit<C>, kColumns = kUnit<C>;
  C values[kRows][kColumns] = {};

  static __device__ __forceinline__ int FirstRow() { return threadIdx.x / kUnits * kRows; }
  static __device__ __forceinline__ int FirstColumn() { return threadIdx.x % kUnits * kColumns; }
};

// Where a tile's sums go, a row of them from each thread.
template <typename T>
struct Results {
  T* at;
  int rows, columns;
  bool wide;

  Results(T* at, int64_t rows, int64_t columns)
      : at(at),
        rows(static_cast<int>(rows)),
        columns(static_cast<int>(columns)),
        wide(columns % kUnit<Compute<T>> == 0 && Aligned(at, kUnit<Compute<T>> * sizeof(T))) {}

  __device__ __forceinline__ Results OfHead(int64_t head) const {
    Results own = *this;
    own.at += head * rows * columns;
    return own;
  }
  __device__ __forceinline__ void Store(int row, int column,
                                        const Compute<T> (&values)[kUnit<Compute<T>>]) const {
    using C = Compute<T>;
    if (row >= rows || column >= columns) return;
    T* const to = at + int64_t{row} * columns + column;
    if (wide) {
      Vector<T, kUnit<C>> vector;
#pragma unroll
      for (int u = 0; u < kUnit<C>; ++u) vector.values[u] = Narrow<T>(values[u]);
      StoreVector(to, vector);
    } else {
#pragma unroll
      for (int u = 0; u < kUnit<C>; ++u) {
        if (column + u < columns) to[u] = Narrow<T>(values[u]);
      }
    }
  }
  // A tile of them.
  __device__ __forceinline__ void Store(int first_row, int first_column,
                                        const TilePart<Compute<T>>& sums) const {
#pragma unroll
    for (int i = 0; i < TilePart<Compute<T>>::kRows; ++i)
      Store(first_row + TilePart<Compute<T>>::FirstRow() + i,
            first_column + TilePart<Compute<T>>::FirstColumn(), sums.values[i]);
  }
};

}  // namespace pipec::cuda
