// The transposition of a matrix in square blocks, each of which fits the cache on both sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pipec::cpu {

inline constexpr int64_t kTransposeBlock = 32;

// Four rows of four elements of 32 bits in registers, turned.
inline void TransposeFour(const std::byte* from, std::byte* to, int64_t from_stride, int64_t to_stride) {
  using Four = uint32_t __attribute__((vector_size(16)));
  Four a, b, c, d;
  std::memcpy(&a, from, 16);
  std::memcpy(&b, from + from_stride, 16);
  std::memcpy(&c, from + 2 * from_stride, 16);
  std::memcpy(&d, from + 3 * from_stride, 16);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  std::memcpy(to, &a, 16);
  std::memcpy(to + to_stride, &b, 16);
  std::memcpy(to + 2 * to_stride, &c, 16);
  std::memcpy(to + 3 * to_stride, &d, 16);
}

// to[i][k] = from[k][i] for i < rows, k < columns. `from` is contiguous along i, its rows from_stride bytes
// apart; `to` is contiguous along k, its rows to_stride bytes apart.
template <typename T>
void TransposeStrips(const std::byte* from, std::byte* to, int64_t rows, int64_t columns, int64_t from_stride,
                     int64_t to_stride) {
  const auto one = [&](int64_t i, int64_t k) {
    std::memcpy(to + i * to_stride + k * sizeof(T), from + k * from_stride + i * sizeof(T), sizeof(T));
  };
  for (int64_t row = 0; row < rows; row += kTransposeBlock) {
    const int64_t row_end = std::min(row + kTransposeBlock, rows);
    for (int64_t column = 0; column < columns; column += kTransposeBlock) {
      const int64_t column_end = std::min(column + kTransposeBlock, columns);
      int64_t i = row;
      if constexpr (sizeof(T) == 4) {
        for (; i + 4 <= row_end; i += 4) {
          int64_t k = column;
          for (; k + 4 <= column_end; k += 4) {
            TransposeFour(from + k * from_stride + i * 4, to + i * to_stride + k * 4, from_stride, to_stride);
          }
          for (; k < column_end; ++k) {
            for (int64_t r = i; r < i + 4; ++r) one(r, k);
          }
        }
      }
      for (; i < row_end; ++i) {
        for (int64_t k = column; k < column_end; ++k) one(i, k);
      }
    }
  }
}

}  // namespace pipec::cpu
