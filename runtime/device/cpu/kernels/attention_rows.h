// What both directions of attention do with a row of scores.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/kernels/attention_blocks.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

// Enough rows that a product is worth its start, few enough that their weights stay in a cache of the second level.
inline constexpr BlockLimits kBlockLimits{.rows = 128, .weights = 128 * 1024, .least_rows = 16};

// Parts of a workspace, one behind the other.
inline int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The mask of one row: `added`, `chosen`, or neither. column_step: 0 or 1.
template <typename T>
struct MaskRow {
  const T* added = nullptr;
  const bool* chosen = nullptr;
  int64_t column_step = 0;

  // Elements 0 .. n of the row.
  PIPEC_INLINE void Apply(T* s, int64_t n, T fill) const {
    if (added && column_step == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) s[j] += added[j];
    } else if (added) {
      for (int64_t j = 0; j < n; ++j) s[j] += *added;
    } else if (chosen && column_step == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) s[j] = chosen[j] ? s[j] : fill;
    } else if (chosen && !*chosen) {
      for (int64_t j = 0; j < n; ++j) s[j] = fill;
    }
  }
  // No gradient passes where `fill` stands.
  PIPEC_INLINE void Clear(T* ds, int64_t n) const {
    if (!chosen) return;
    if (column_step == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) ds[j] = chosen[j] ? ds[j] : T{0};
    } else if (!*chosen) {
      for (int64_t j = 0; j < n; ++j) ds[j] = 0;
    }
  }
};

template <typename T>
MaskRow<T> MaskRowOf(const Attention& a, const void* mask, int64_t head, int64_t row) {
  if (a.mask == Attention::Mask::kNone) return {};
  const int64_t at = a.MaskAt(head) + row * a.mask_row_step;
  MaskRow<T> result{.column_step = a.mask_column_step};
  if (a.mask == Attention::Mask::kAdded) {
    result.added = static_cast<const T*>(mask) + at;
  } else {
    result.chosen = static_cast<const bool*>(mask) + at;
  }
  return result;
}

// run(head, row, place): for every row of the block, the place-th in it; `seen`: its first columns, the others weigh
// nothing.
template <typename Run>
void ForEachRow(const Attention& a, const AttentionBlock& block, const Run& run) {
  const int64_t grain = 16384 / block.columns + 1;
  ParallelFor(block.heads * block.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place) {
      const int64_t row = block.row + place % block.rows;
      run(block.head + place / block.rows, row, place, a.causal ? row + 1 : block.columns);
    }
  });
}

}  // namespace pipec::cpu
