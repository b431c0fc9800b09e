// Tiles of float32 and float64, by multiplications and additions of each thread: it reads 3 units for its products of a
// line of the factors.
#pragma once

#include "runtime/device/cuda/kernels/tiles.cuh"

namespace pipec::cuda {

// In shared memory. All threads must come together to a product, which begins with a barrier and ends without one: the
// factor may be stored right before it is multiplied, and before it is stored anew a product of rows must lie between.
template <typename T>
class WideTiles {
 public:
  // sums[i][j] += a's row (a_row + i) times b's row (b_row + j), which are of one length.
  __device__ __forceinline__ void AddProductOfRows(const Matrix<T>& a, int a_row, const Matrix<T>& b,
                                                   int b_row, TilePart<T>& sums) {
    for (int k = 0; k < a.columns; k += kSlice) {
      __syncthreads();
      LoadColumns(a, a_row, k, left_);
      LoadColumns(b, b_row, k, right_);
      __syncthreads();
      Add(left_, right_, min(a.columns - k, kSlice), sums);
    }
  }

  // The tile as a left factor.
  __device__ __forceinline__ void StoreFactor(const TilePart<T>& part) {
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < Part::kRows; i += kUnit<T>) {
        Vector<T> unit;
#pragma unroll
        for (int u = 0; u < kUnit<T>; ++u) unit.values[u] = part.values[i + u][j];
        factor_[PlaceOf(Part::FirstColumn() + j, (Part::FirstRow() + i) / kUnit<T>)] = unit;
      }
    }
  }
  // What this thread stored.
  __device__ __forceinline__ void RestoreFactor(TilePart<T>& part) const {
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < Part::kRows; i += kUnit<T>) {
        const Vector<T> unit = factor_[PlaceOf(Part::FirstColumn() + j, (Part::FirstRow() + i) / kUnit<T>)];
#pragma unroll
        for (int u = 0; u < kUnit<T>; ++u) part.values[i + u][j] = unit.values[u];
      }
    }
  }
  // run(i, j, number) of what this thread stored; in a loop that is not unrolled, for what would take registers from
  // the products.
  template <typename Run>
  __device__ __forceinline__ void ForFactor(const Run& run) {
#pragma unroll 1
    for (int n = 0; n < Part::kColumns * Part::kRows / kUnit<T>; ++n) {
      const int i = Part::FirstRow() + n % 2 * kUnit<T>, j = Part::FirstColumn() + n / 2;
      Vector<T> unit = factor_[PlaceOf(j, i / kUnit<T>)];
#pragma unroll
      for (int u = 0; u < kUnit<T>; ++u) run(i + u, j, unit.values[u]);
      factor_[PlaceOf(j, i / kUnit<T>)] = unit;
    }
  }
  // The same of numbers that are no factor yet.
  template <typename Run>
  __device__ __forceinline__ void ForNumbers(TilePart<T>& part, const Run& run) {
    StoreFactor(part);
    ForFactor(run);
    RestoreFactor(part);
  }

  // sums[i][j] += the factor's element (i, k) times b's (first_row + k, first_column + j), over b's rows.
  __device__ __forceinline__ void AddProductOfFactor(const Matrix<T>& b, int first_row, int first_column,
                                                     TilePart<T>& sums) {
    const int lines = min(b.rows - first_row, kSide<T>);
    for (int k = 0; k < lines; k += kSlice) {
      __syncthreads();
      LoadRows(b, first_row + k, first_column, right_);
      __syncthreads();
      Add(factor_ + k * kUnits, right_, min(lines - k, kSlice), sums);
    }
  }

 private:
  using Part = TilePart<T>;

  // Where a unit of a line lies: elsewhere in the next kUnit lines, so that threads that store units below one another,
  // as they do where rows become columns, meet different banks.
  static __device__ __forceinline__ int PlaceOf(int line, int unit) {
    return line * kUnits + (unit ^ (line / kUnit<T> % 8));
  }

  // Line k: the numbers (first_row ... first_row + kSide, first_column + k).
  static __device__ __forceinline__ void LoadColumns(const Matrix<T>& matrix, int first_row, int first_column,
                                                     Vector<T>* lines) {
    constexpr int kSize = Matrix<T>::kSize, kParts = kSlice / kSize;
#pragma unroll 2
    for (int n = 0; n < kSide<T> * kParts / kTileThreads; ++n) {
      const int i = n * kTileThreads + threadIdx.x;
      const int row = i / kParts, k = i % kParts * kSize;
      const Vector<T> loaded = matrix.Load(first_row + row, first_column + k);
#pragma unroll
      for (int u = 0; u < kSize; ++u)
        lines[PlaceOf(k + u, row / kUnit<T>)].values[row % kUnit<T>] = loaded.values[u];
    }
  }

  // Line k: the numbers (first_row + k, first_column ... first_column + kSide).
  static __device__ __forceinline__ void LoadRows(const Matrix<T>& matrix, int first_row, int first_column,
                                                  Vector<T>* lines) {
    constexpr int kSize = Matrix<T>::kSize, kParts = kSide<T> / kSize;
#pragma unroll 2
    for (int n = 0; n < kSlice * kParts / kTileThreads; ++n) {
      const int i = n * kTileThreads + threadIdx.x;
      const int k = i / kParts, column = i % kParts * kSize;
      const Vector<T> loaded = matrix.Load(first_row + k, first_column + column);
      lines[PlaceOf(k, column / kUnit<T>)] = loaded;
    }
  }

  // The sums of so many lines.
  static __device__ __forceinline__ void Add(const Vector<T>* left, const Vector<T>* right, int lines,
                                             Part& sums) {
    for (int first = 0; first < lines; first += kUnit<T>) {
#pragma unroll
      for (int k = first; k < first + kUnit<T>; ++k) {
        const Vector<T> upper = left[PlaceOf(k, Part::FirstRow() / kUnit<T>)],
                        lower = left[PlaceOf(k, Part::FirstRow() / kUnit<T> + 1)],
                        across = right[PlaceOf(k, threadIdx.x % kUnits)];
#pragma unroll
        for (int i = 0; i < kUnit<T>; ++i) {
#pragma unroll
          for (int j = 0; j < Part::kColumns; ++j) {
            sums.values[i][j] += upper.values[i] * across.values[j];
            sums.values[kUnit<T> + i][j] += lower.values[i] * across.values[j];
          }
        }
      }
    }
  }

  // Lines of what is summed over.
  Vector<T> left_[kSlice * kUnits], right_[kSlice * kUnits];
  Vector<T> factor_[kSide<T> * kUnits];
};

}  // namespace pipec::cuda
