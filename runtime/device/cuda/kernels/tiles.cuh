// Products of tiles by a block of 128 threads: sums[i][j] += sum over k of left[k][i] * right[k][j]. The factors lie in
// shared memory, line after line, a line for each k; the sums in registers: a thread has 2 x 1 units of a tile's
// kUnits x kUnits, a unit being the numbers of 16 bytes, and reads 3 units for its products of a line.
//
// All threads must come here together. A product begins with a barrier, so that its left factor may be stored right
// before it; it ends without one.
#pragma once

#include "runtime/device/cuda/kernels/elements.cuh"

namespace pipec::cuda {

inline constexpr int kTileThreads = 128;
inline constexpr int kUnits = 16;
inline constexpr int kSlice = 32;  // lines of a factor that are loaded at a time

template <typename C>
inline constexpr int kUnit = Vector<C>::kSize;
// Rows, or columns, of a tile: 64 floats, 32 doubles.
template <typename C>
inline constexpr int kSide = kUnits* kUnit<C>;

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
  __device__ __forceinline__ Vector<Compute<T>, kSize> Load(int row, int column) const {
    Vector<Compute<T>, kSize> result = {};
    if (row >= rows || column >= columns) return result;
    const T* const from = at + int64_t{row} * columns + column;
    if (wide) {
      const Vector<T> vector = LoadVector(from);
#pragma unroll
      for (int u = 0; u < kSize; ++u) result.values[u] = Widen(vector.values[u]);
    } else {
#pragma unroll
      for (int u = 0; u < kSize; ++u) {
        if (column + u < columns) result.values[u] = Widen(from[u]);
      }
    }
    return result;
  }
};

// Where a unit of a line lies: elsewhere in the next kUnit lines, so that threads that store units below one another,
// as they do where rows become columns, meet different banks.
template <typename C>
__device__ __forceinline__ int PlaceOf(int line, int unit) {
  return line * kUnits + (unit ^ (line / kUnit<C> % 8));
}

// Line k: the numbers (first_row ... first_row + kSide, first_column + k).
template <typename T>
__device__ __forceinline__ void LoadColumns(const Matrix<T>& matrix, int first_row, int first_column,
                                            Vector<Compute<T>>* lines) {
  using C = Compute<T>;
  constexpr int kSize = Matrix<T>::kSize, kParts = kSlice / kSize;
#pragma unroll(kSize > 4 ? 1 : 2)
  for (int n = 0; n < kSide<C> * kParts / kTileThreads; ++n) {
    const int i = n * kTileThreads + threadIdx.x;
    const int row = i / kParts, k = i % kParts * kSize;
    const Vector<C, kSize> loaded = matrix.Load(first_row + row, first_column + k);
#pragma unroll
    for (int u = 0; u < kSize; ++u)
      lines[PlaceOf<C>(k + u, row / kUnit<C>)].values[row % kUnit<C>] = loaded.values[u];
  }
}

// Line k: the numbers (first_row + k, first_column ... first_column + kSide).
template <typename T>
__device__ __forceinline__ void LoadRows(const Matrix<T>& matrix, int first_row, int first_column,
                                         Vector<Compute<T>>* lines) {
  using C = Compute<T>;
  constexpr int kSize = Matrix<T>::kSize, kParts = kSide<C> / kSize;
#pragma unroll(kSize > 4 ? 1 : 2)
  for (int n = 0; n < kSlice * kParts / kTileThreads; ++n) {
    const int i = n * kTileThreads + threadIdx.x;
    const int k = i / kParts, column = i % kParts * kSize;
    const Vector<C, kSize> loaded = matrix.Load(first_row + k, first_column + column);
#pragma unroll
    for (int u = 0; u < kSize; u += kUnit<C>) {
      Vector<C> unit;
#pragma unroll
      for (int v = 0; v < kUnit<C>; ++v) unit.values[v] = loaded.values[u + v];
      lines[PlaceOf<C>(k, (column + u) / kUnit<C>)] = unit;
    }
  }
}

// A thread's part of a tile.
template <typename C>
struct TilePart {
  static constexpr int kRows = 2 * kUnit<C>, kColumns = kUnit<C>;
  C values[kRows][kColumns] = {};

  static __device__ __forceinline__ int FirstRow() { return threadIdx.x / kUnits * kRows; }
  static __device__ __forceinline__ int FirstColumn() { return threadIdx.x % kUnits * kColumns; }

  // The sums of so many lines.
  __device__ __forceinline__ void Add(const Vector<C>* left, const Vector<C>* right, int lines) {
    for (int first = 0; first < lines; first += kUnit<C>) {
#pragma unroll
      for (int k = first; k < first + kUnit<C>; ++k) {
        const Vector<C> upper = left[PlaceOf<C>(k, FirstRow() / kUnit<C>)],
                        lower = left[PlaceOf<C>(k, FirstRow() / kUnit<C> + 1)],
                        across = right[PlaceOf<C>(k, threadIdx.x % kUnits)];
#pragma unroll
        for (int i = 0; i < kUnit<C>; ++i) {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            values[i][j] += upper.values[i] * across.values[j];
            values[kUnit<C> + i][j] += lower.values[i] * across.values[j];
          }
        }
      }
    }
  }

  // The tile as a left factor: line j is its column j.
  __device__ __forceinline__ void Store(Vector<C>* lines) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < kRows; i += kUnit<C>) {
        Vector<C> unit;
#pragma unroll
        for (int u = 0; u < kUnit<C>; ++u) unit.values[u] = values[i + u][j];
        lines[PlaceOf<C>(FirstColumn() + j, (FirstRow() + i) / kUnit<C>)] = unit;
      }
    }
  }
  // What this thread stored.
  __device__ __forceinline__ void Restore(const Vector<C>* lines) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < kRows; i += kUnit<C>) {
        const Vector<C> unit = lines[PlaceOf<C>(FirstColumn() + j, (FirstRow() + i) / kUnit<C>)];
#pragma unroll
        for (int u = 0; u < kUnit<C>; ++u) values[i + u][j] = unit.values[u];
      }
    }
  }
};

// run(i, j, number) of a tile's numbers in shared memory that this thread stored; in a loop that is not unrolled, for
// what would take registers from the products.
template <typename C, typename Run>
__device__ __forceinline__ void ForStored(Vector<C>* lines, const Run& run) {
  using Part = TilePart<C>;
#pragma unroll 1
  for (int n = 0; n < Part::kColumns * Part::kRows / kUnit<C>; ++n) {
    const int i = Part::FirstRow() + n % 2 * kUnit<C>, j = Part::FirstColumn() + n / 2;
    Vector<C> unit = lines[PlaceOf<C>(j, i / kUnit<C>)];
#pragma unroll
    for (int u = 0; u < kUnit<C>; ++u) run(i + u, j, unit.values[u]);
    lines[PlaceOf<C>(j, i / kUnit<C>)] = unit;
  }
}

// What a block's products share.
template <typename C>
struct Factors {
  Vector<C>*left, *right;  // kSlice lines each
  Vector<C>* tile;         // kSide lines
};

// sums[i][j] += a's row (a_row + i) times b's row (b_row + j), which are of one length.
template <typename T>
__device__ __forceinline__ void AddProductOfRows(const Matrix<T>& a, int a_row, const Matrix<T>& b, int b_row,
                                                 const Factors<Compute<T>>& factors,
                                                 TilePart<Compute<T>>& sums) {
  for (int k = 0; k < a.columns; k += kSlice) {
    __syncthreads();
    LoadColumns(a, a_row, k, factors.left);
    LoadColumns(b, b_row, k, factors.right);
    __syncthreads();
    sums.Add(factors.left, factors.right, min(a.columns - k, kSlice));
  }
}

// sums[i][j] += the stored tile's element (i, k) times b's (first_row + k, first_column + j), over b's rows.
template <typename T>
__device__ __forceinline__ void AddProductOfTile(const Matrix<T>& b, int first_row, int first_column,
                                                 const Factors<Compute<T>>& factors,
                                                 TilePart<Compute<T>>& sums) {
  using C = Compute<T>;
  const int lines = min(b.rows - first_row, kSide<C>);
  for (int k = 0; k < lines; k += kSlice) {
    __syncthreads();
    LoadRows(b, first_row + k, first_column, factors.right);
    __syncthreads();
    sums.Add(factors.tile + k * kUnits, factors.right, min(lines - k, kSlice));
  }
}

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
