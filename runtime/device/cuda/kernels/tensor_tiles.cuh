// Tiles of 16-bit floats, by the tensor cores: a warp multiplies 16 of a tile's rows. Which lane has which of a warp's
// sums is not for programs to know, so they pass through shared memory.
#pragma once

#include <mma.h>

#include "runtime/device/cuda/kernels/tiles.cuh"

namespace pipec::cuda {

// Used like WideTiles. A left factor is rounded to 16 bits when it is stored.
template <typename T>
class TensorTiles {
 public:
  __device__ __forceinline__ void AddProductOfRows(const Matrix<T>& a, int a_row, const Matrix<T>& b,
                                                   int b_row, TilePart<float>& sums) {
    Sums own[kMatrices];
    Clear(own);
    for (int k = 0; k < a.columns; k += kSlice) {
      __syncthreads();
      Load<kSide<float>, kSlice, kSliceStep>(a, a_row, k, left_);
      Load<kSide<float>, kSlice, kSliceStep>(b, b_row, k, right_);
      __syncthreads();
#pragma unroll
      for (int part = 0; part < kSlice; part += kMatrix) {
        if (k + part < a.columns)
          Multiply<nvcuda::wmma::row_major, nvcuda::wmma::col_major>(left_ + Row() * kSliceStep + part,
                                                                     kSliceStep, right_ + part, kSliceStep,
                                                                     kMatrix * kSliceStep, own);
      }
    }
    AddTo(sums, own);
  }

  __device__ __forceinline__ void StoreFactor(const TilePart<float>& part) {
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
      Vector<T> column;
#pragma unroll
      for (int i = 0; i < Part::kRows; ++i) column.values[i] = Narrow<T>(part.values[i][j]);
      StoreVector(FactorAt(Part::FirstRow(), Part::FirstColumn() + j), column);
    }
  }
  __device__ __forceinline__ void RestoreFactor(TilePart<float>& part) {
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
      const Vector<T> column = LoadVector(FactorAt(Part::FirstRow(), Part::FirstColumn() + j));
#pragma unroll
      for (int i = 0; i < Part::kRows; ++i) part.values[i][j] = Widen(column.values[i]);
    }
  }
  template <typename Run>
  __device__ __forceinline__ void ForFactor(const Run& run) {
#pragma unroll 1
    for (int j = Part::FirstColumn(); j < Part::FirstColumn() + Part::kColumns; ++j) {
      T* const column = FactorAt(Part::FirstRow(), j);
#pragma unroll
      for (int i = 0; i < Part::kRows; ++i) {
        float number = Widen(column[i]);
        run(Part::FirstRow() + i, j, number);
        column[i] = Narrow<T>(number);
      }
    }
  }
  template <typename Run>
  __device__ __forceinline__ void ForNumbers(TilePart<float>& part, const Run& run) {
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) {
      Vector<float> row;
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) row.values[j] = part.values[i][j];
      StoreVector(NumbersAt(i), row);
    }
#pragma unroll 1
    for (int i = 0; i < Part::kRows; ++i) {
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j)
        run(Part::FirstRow() + i, Part::FirstColumn() + j, NumbersAt(i)[j]);
    }
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) {
      const Vector<float> row = LoadVector(NumbersAt(i));
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) part.values[i][j] = row.values[j];
    }
  }

  __device__ __forceinline__ void AddProductOfFactor(const Matrix<T>& b, int first_row, int first_column,
                                                     TilePart<float>& sums) {
    Sums own[kMatrices];
    Clear(own);
    const int lines = min(b.rows - first_row, kSide<float>);
    for (int k = 0; k < lines; k += kSlice) {
      __syncthreads();
      Load<kSlice, kSide<float>, kTileStep>(b, first_row + k, first_column, right_);
      __syncthreads();
#pragma unroll
      for (int part = 0; part < kSlice; part += kMatrix) {
        if (k + part < lines)
          Multiply<nvcuda::wmma::col_major, nvcuda::wmma::row_major>(
              FactorAt(Row(), k + part), kTileStep, right_ + part * kTileStep, kTileStep, kMatrix, own);
      }
    }
    AddTo(sums, own);
  }

 private:
  using Part = TilePart<float>;
  static constexpr int kMatrix = 16;  // rows and columns of what the tensor cores multiply at once
  static constexpr int kMatrices = kSide<float> / kMatrix;
  // From one row to the next in shared memory, which must not be a multiple of all banks.
  static constexpr int kSliceStep = kSlice + 8, kTileStep = kSide<float> + 8, kNumberStep = kSide<float> + 4;
  using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kMatrix, kMatrix, kMatrix, float>;

  // This warp's first row.
  static __device__ __forceinline__ int Row() { return threadIdx.x / 32 * kMatrix; }
  // Columns lie one after the other in the factor; in the numbers rows do, of which it is this thread's part from row i
  // of it on.
  __device__ __forceinline__ T* FactorAt(int i, int j) { return factor_ + j * kTileStep + i; }
  __device__ __forceinline__ float* NumbersAt(int i) {
    return numbers_ + (Part::FirstRow() + i) * kNumberStep + Part::FirstColumn();
  }

  // So many rows and columns of the matrix, from there on.
  template <int kRows, int kColumns, int kStep>
  static __device__ __forceinline__ void Load(const Matrix<T>& matrix, int first_row, int first_column,
                                              T* to) {
    constexpr int kParts = kColumns / Matrix<T>::kSize;
#pragma unroll
    for (int n = 0; n < kRows * kParts / kTileThreads; ++n) {
      const int i = n * kTileThreads + threadIdx.x, row = i / kParts, column = i % kParts * Matrix<T>::kSize;
      StoreVector(to + row * kStep + column, matrix.Load(first_row + row, first_column + column));
    }
  }

  static __device__ __forceinline__ void Clear(Sums (&own)[kMatrices]) {
#pragma unroll
    for (int n = 0; n < kMatrices; ++n) nvcuda::wmma::fill_fragment(own[n], 0.0f);
  }

  // Of this warp's rows of the left factor and all columns of the right one, kMatrix of which are `across` apart.
  template <typename LeftOrder, typename RightOrder>
  static __device__ __forceinline__ void Multiply(const T* left, int left_step, const T* right,
                                                  int right_step, int across, Sums (&own)[kMatrices]) {
    using nvcuda::wmma::fragment, nvcuda::wmma::load_matrix_sync;
    fragment<nvcuda::wmma::matrix_a, kMatrix, kMatrix, kMatrix, T, LeftOrder> rows;
    load_matrix_sync(rows, left, left_step);
#pragma unroll
    for (int n = 0; n < kMatrices; ++n) {
      fragment<nvcuda::wmma::matrix_b, kMatrix, kMatrix, kMatrix, T, RightOrder> columns;
      load_matrix_sync(columns, right + n * across, right_step);
      nvcuda::wmma::mma_sync(own[n], rows, columns, own[n]);
    }
  }

  // What this warp has, of which its threads have their parts.
  __device__ __forceinline__ void AddTo(TilePart<float>& sums, const Sums (&own)[kMatrices]) {
#pragma unroll
    for (int n = 0; n < kMatrices; ++n)
      nvcuda::wmma::store_matrix_sync(numbers_ + Row() * kNumberStep + n * kMatrix, own[n], kNumberStep,
                                      nvcuda::wmma::mem_row_major);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) {
      const Vector<float> row = LoadVector(NumbersAt(i));
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) sums.values[i][j] += row.values[j];
    }
  }

  // Rows of what is multiplied over its length, or lines of what is multiplied by the factor.
  alignas(32) T left_[kSide<float> * kSliceStep];
  alignas(32) T right_[kSide<float> * kSliceStep];
  alignas(32) T factor_[kSide<float> * kTileStep];
  alignas(32) float numbers_[kSide<float> * kNumberStep];
};

}  // namespace pipec::cuda
