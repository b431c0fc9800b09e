// What both directions of attention do with the rows of a block (operands/attention_blocks.h).
#pragma once

#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/operands/attention_blocks.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {

inline constexpr int kRowThreads = 128;

// Few blocks, each of many tiles, whose weights stay in the GPU's cache.
inline constexpr BlockLimits kBlockLimits{.rows = 1024, .weights = int64_t{4} << 20, .least_rows = 128};

// What libraries ask of a workspace's parts.
inline int64_t AlignedBytes(int64_t bytes) { return (bytes + 255) / 256 * 256; }

inline int64_t MostWeights(const std::vector<AttentionBlock>& blocks) {
  int64_t most = 0;
  for (const AttentionBlock& block : blocks) most = std::max(most, block.weights());
  return most;
}

// Added or chosen by, or neither; of one head, of one row.
template <typename C>
struct MaskOfHeads {
  const C* added = nullptr;
  const bool* chosen = nullptr;
  C fill = 0;
  int axes = 0;
  int64_t dims[kMaxRank] = {}, steps[kMaxRank] = {};
  int64_t row_step = 0, column_step = 0;

  MaskOfHeads(const Attention& a, const void* mask) : fill(static_cast<C>(a.fill)) {
    if (a.mask == Attention::Mask::kNone) return;
    if (a.mask == Attention::Mask::kAdded) added = static_cast<const C*>(mask);
    if (a.mask == Attention::Mask::kChosen) chosen = static_cast<const bool*>(mask);
    axes = static_cast<int>(a.heads.size());
    std::copy(a.heads.begin(), a.heads.end(), dims);
    std::copy(a.mask_steps.begin(), a.mask_steps.end(), steps);
    row_step = a.mask_row_step;
    column_step = a.mask_column_step;
  }

  __device__ int64_t At(int64_t head, int64_t row) const {
    int64_t at = row * row_step;
    for (int i = axes; i-- > 0; head /= dims[i]) at += head % dims[i] * steps[i];
    return at;
  }
};

// A row of a block.
template <typename C>
struct AttentionRow {
  int64_t row;  // of all heads'
  int64_t seen;
  const C* added;
  const bool* chosen;
  C fill;
  int64_t column_step;

  __device__ __forceinline__ bool Hides(int64_t column) const {
    return chosen != nullptr && !chosen[column * column_step];
  }
  __device__ __forceinline__ C Masked(int64_t column, C score) const {
    if (added != nullptr) return score + added[column * column_step];
    return Hides(column) ? fill : score;
  }
};

template <typename C>
struct AttentionRows {
  AttentionBlock block;
  int64_t head_rows;
  bool causal, zero_rows;
  MaskOfHeads<C> mask;

  AttentionRows(const Attention& a, const AttentionBlock& of, const void* mask)
      : block(of), head_rows(a.rows), causal(a.causal), zero_rows(a.zero_rows), mask(a, mask) {}

  __host__ __device__ int64_t count() const { return block.heads * block.rows; }

  __device__ AttentionRow<C> At(int64_t place) const {
    const int64_t head = block.head + place / block.rows, row = block.row + place % block.rows;
    const int64_t at = mask.At(head, row);
    return {head * head_rows + row,
            causal ? row + 1 : block.columns,
            mask.added == nullptr ? nullptr : mask.added + at,
            mask.chosen == nullptr ? nullptr : mask.chosen + at,
            mask.fill,
            mask.column_step};
  }
};

template <typename C>
dim3 GridOf(const AttentionRows<C>& rows) {
  return dim3(static_cast<unsigned>(std::min<int64_t>(rows.count(), 1 << 20)));
}

}  // namespace pipec::cuda
