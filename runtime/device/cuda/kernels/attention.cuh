// What both directions of attention share: scores as their softmax sees them, and which block of threads has which
// part of which head.
//
// After Dao, "FlashAttention-2" (2023): a block of threads goes over tiles of a head's scores, which nobody keeps. Sums
// are added in an order that shapes alone decide.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/kernels/tensor_tiles.cuh"
#include "runtime/device/cuda/kernels/wide_tiles.cuh"
#include "runtime/device/operands/attention.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {

// What multiplies numbers of a type.
template <typename T>
using Tiles = std::conditional_t<sizeof(T) == 2, TensorTiles<T>, WideTiles<T>>;

// Of one head.
template <typename C>
struct HeadScores {
  const C* added;      // or
  const bool* chosen;  // or neither
  int64_t row_step, column_step;
  int rows, columns;
  C scale, fill;
  bool causal, zero_rows;

  // Whether there is such a row and the column weighs anything in it.
  __device__ __forceinline__ bool Sees(int row, int column) const {
    return row < rows && column < (causal ? row + 1 : columns);
  }
  __device__ __forceinline__ int64_t MaskAt(int row, int column) const {
    return row * row_step + column * column_step;
  }
  // Whether a row with this logarithm is to be zeros.
  __device__ __forceinline__ bool IsZero(C log_sum) const { return zero_rows && !isfinite(log_sum); }
};

// A tile of scores begins at a row and a column of its head. kTransposed: the tile's rows are the head's columns.
template <typename C, bool kTransposed>
struct TileOfScores {
  const HeadScores<C>& head;
  int row, column;

  __device__ __forceinline__ int Row(int i, int j) const { return row + (kTransposed ? j : i); }
  __device__ __forceinline__ int Column(int i, int j) const { return column + (kTransposed ? i : j); }
  __device__ __forceinline__ bool Sees(int i, int j) const { return head.Sees(Row(i, j), Column(i, j)); }

  // Scores from products of Q and K.
  template <typename Tiles>
  __device__ __forceinline__ void Finish(TilePart<C>& part, Tiles& tiles) const {
#pragma unroll
    for (int i = 0; i < TilePart<C>::kRows; ++i) {
#pragma unroll
      for (int j = 0; j < TilePart<C>::kColumns; ++j) part.values[i][j] *= head.scale;
    }
    if (head.added != nullptr || head.chosen != nullptr) tiles.ForNumbers(part, Mask{*this});
  }
  // No gradient passes where the mask's fill stands.
  template <typename Tiles>
  __device__ __forceinline__ void ClearHidden(Tiles& tiles) const {
    if (head.chosen != nullptr) tiles.ForFactor(Clear{*this});
  }

 private:
  struct Mask {
    const TileOfScores& tile;
    __device__ __forceinline__ void operator()(int i, int j, C& score) const {
      if (!tile.Sees(i, j)) return;
      const HeadScores<C>& head = tile.head;
      const int64_t at = head.MaskAt(tile.Row(i, j), tile.Column(i, j));
      if (head.added != nullptr) {
        score += head.added[at];
      } else if (!head.chosen[at]) {
        score = head.fill;
      }
    }
  };
  struct Clear {
    const TileOfScores& tile;
    __device__ __forceinline__ void operator()(int i, int j, C& d_score) const {
      if (tile.Sees(i, j) && !tile.head.chosen[tile.head.MaskAt(tile.Row(i, j), tile.Column(i, j))])
        d_score = 0;
    }
  };
};

template <typename C>
struct AttentionScores {
  HeadScores<C> of_first;
  int axes = 0;
  int64_t dims[kMaxRank] = {}, steps[kMaxRank] = {};

  AttentionScores(const Attention& a, const void* mask)
      : of_first{a.mask == Attention::Mask::kAdded ? static_cast<const C*>(mask) : nullptr,
                 a.mask == Attention::Mask::kChosen ? static_cast<const bool*>(mask) : nullptr,
                 a.mask_row_step,
                 a.mask_column_step,
                 static_cast<int>(a.rows),
                 static_cast<int>(a.columns),
                 static_cast<C>(a.scale),
                 static_cast<C>(a.fill),
                 a.causal,
                 a.zero_rows} {
    if (a.mask == Attention::Mask::kNone) return;
    axes = static_cast<int>(a.heads.size());
    std::copy(a.heads.begin(), a.heads.end(), dims);
    std::copy(a.mask_steps.begin(), a.mask_steps.end(), steps);
  }

  __device__ __forceinline__ HeadScores<C> OfHead(int64_t head) const {
    int64_t at = 0;
    for (int i = axes; i-- > 0; head /= dims[i]) at += head % dims[i] * steps[i];
    HeadScores<C> own = of_first;
    if (own.added != nullptr) own.added += at;
    if (own.chosen != nullptr) own.chosen += at;
    return own;
  }
};

// Tiles that so many rows, or columns, take.
template <typename C>
__host__ __device__ constexpr int64_t TilesOf(int64_t n) {
  return (n + kSide<C> - 1) / kSide<C>;
}

// A block for each tile of so many rows of each head, and each slice of so many columns of a result.
template <typename C>
dim3 TileGrid(const Attention& a, int64_t rows, int64_t columns) {
  return dim3(static_cast<unsigned>(a.head_count() * TilesOf<C>(rows)),
              static_cast<unsigned>(TilesOf<C>(columns)));
}

// Unimplemented where all heads' rows cannot be counted in an int, or a grid may have fewer blocks.
inline absl::Status CheckSizes(const KernelSpec& spec, const Attention& a) {
  constexpr int64_t kMostRows = std::numeric_limits<int>::max() - kSide<float>, kMostNumbers = 1 << 20;
  const int64_t rows = a.head_count() * std::max(a.rows, a.columns), numbers = std::max(a.depth, a.width);
  if (rows <= kMostRows && numbers <= kMostNumbers) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, ") has ", rows,
                                               " rows of ", numbers, " numbers, of ", kMostRows, " and ",
                                               kMostNumbers, " at most"));
}

// What this block is for: its head, and the first row and column of its tile.
template <typename C>
struct OwnTile {
  int head, row, column;

  // last_first: a head's last tile of rows is the first block's. What takes longest is to begin first.
  __device__ __forceinline__ OwnTile(int rows, bool last_first) {
    const int tiles = static_cast<int>(TilesOf<C>(rows)), tile = static_cast<int>(blockIdx.x) % tiles;
    head = static_cast<int>(blockIdx.x) / tiles;
    row = (last_first ? tiles - 1 - tile : tile) * kSide<C>;
    column = static_cast<int>(blockIdx.y) * kSide<C>;
  }
};

}  // namespace pipec::cuda
