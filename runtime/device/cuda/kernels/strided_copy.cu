#include <algorithm>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/strided_copy.h"
#include "runtime/device/cuda/kernels/units.cuh"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// Axes of the result, in units that are copied at once; strides in units.
struct Axes {
  int rank;
  uint32_t sizes[kMoveRank];
  int64_t from[kMoveRank], to[kMoveRank];
};

struct Offsets {
  int64_t from, to;
};
__device__ __forceinline__ Offsets At(const Axes& axes, int rank, uint32_t i) {
  Offsets offsets{0, 0};
  for (int axis = rank - 1; axis >= 0; --axis) {
    const uint32_t rest = i / axes.sizes[axis], at = i - rest * axes.sizes[axis];
    offsets.from += at * axes.from[axis];
    offsets.to += at * axes.to[axis];
    i = rest;
  }
  return offsets;
}

// U: 1 to 16 bytes.
template <typename U>
__global__ void __launch_bounds__(kThreads) CopyUnits(const U* from, U* to, const Axes axes, uint32_t units) {
  for (int64_t i = FirstItem(); i < units; i += ItemStride()) {
    const Offsets offsets = At(axes, axes.rank, static_cast<uint32_t>(i));
    to[offsets.to] = from[offsets.from];
  }
}

// Elements one by one, from places that lie apart or are one, into 16 bytes of the last axis, whose stride in `to`
// is 1.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    CollectUnits(const T* from, T* to, const Axes axes, int64_t step, uint32_t units) {
  for (int64_t i = FirstItem(); i < units; i += ItemStride()) {
    const Offsets offsets = At(axes, axes.rank, static_cast<uint32_t>(i));
    Vector<T> unit;
#pragma unroll
    for (int k = 0; k < Vector<T>::kSize; ++k) unit.values[k] = from[offsets.from + k * step];
    StoreVector(to + offsets.to, unit);
  }
}

// Tiles of 32 x 32 of the last axis (columns) and the one that is contiguous in `from` (rows); `outer`: the other axes.
constexpr int kTile = 32, kTileRows = kThreads / kTile;
struct Tiles {
  int64_t rows, columns, from_column, to_row;  // strides; from_row and to_column are 1
  uint32_t row_tiles, column_tiles, count;
};
template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyTiles(const T* from, T* to, const Axes outer, const Tiles tiles) {
  __shared__ T tile[kTile * (kTile + 1)];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (uint32_t t = blockIdx.x; t < tiles.count; t += gridDim.x) {
    const uint32_t column_tile = t % tiles.column_tiles, rest = t / tiles.column_tiles;
    const uint32_t row_tile = rest % tiles.row_tiles;
    const Offsets offsets = At(outer, outer.rank, rest / tiles.row_tiles);
    const int64_t row = int64_t{row_tile} * kTile, column = int64_t{column_tile} * kTile;
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + x < tiles.rows && column + i < tiles.columns)
        tile[i * (kTile + 1) + x] = from[offsets.from + (column + i) * tiles.from_column + row + x];
    }
    __syncthreads();
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + i < tiles.rows && column + x < tiles.columns)
        to[offsets.to + (row + i) * tiles.to_row + column + x] = tile[x * (kTile + 1) + i];
    }
    __syncthreads();
  }
}

}  // namespace

absl::StatusOr<StridedCopy> StridedCopy::Of(const KernelSpec& spec, DType dtype, const StridedMove& move) {
  StridedCopy copy;
  const int64_t bytes = SizeOf(dtype);
  copy.element_bytes_ = bytes;
  copy.elements_ = NumElements(move.shape);
  copy.from_offset_ = move.from_offset * bytes;
  copy.to_offset_ = move.to_offset * bytes;
  if (copy.elements_ > std::numeric_limits<uint32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): moves ",
                                                 copy.elements_, " elements, at most 2^32 - 1 are taken"));
  }
  if (copy.elements_ == 0) return copy;
  std::vector<Axis> axes;
  for (size_t i = 0; i < move.shape.size(); ++i) {
    if (move.shape[i] != 1) axes.push_back({move.shape[i], move.from[i] * bytes, move.to[i] * bytes});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  for (const Axis& axis : axes) {
    Axis* const outer = copy.rank_ > 0 ? &copy.axes_[copy.rank_ - 1] : nullptr;
    if (outer != nullptr && outer->to == axis.to * axis.size && outer->from == axis.from * axis.size) {
      *outer = {outer->size * axis.size, axis.from, axis.to};
    } else {
      copy.axes_[copy.rank_++] = axis;
    }
  }
  if (copy.rank_ == 0) copy.axes_[copy.rank_++] = {1, bytes, bytes};
  const Axis& last = copy.axes_[copy.rank_ - 1];
  if (last.to == bytes && last.from != bytes && last.from != 0 && last.size >= 8) {
    for (int i = 0; i + 1 < copy.rank_; ++i) {
      if (copy.axes_[i].from == bytes && copy.axes_[i].size >= 8) copy.tiled_ = i;
    }
  }
  return copy;
}

absl::Status StridedCopy::Run(cudaStream_t stream, const void* from, void* to) const {
  if (elements_ == 0) return absl::OkStatus();
  const auto* const begin = static_cast<const std::byte*>(from) + from_offset_;
  auto* const result = static_cast<std::byte*>(to) + to_offset_;
  const Axis& last = axes_[rank_ - 1];
  const bool together = last.from == element_bytes_ && last.to == element_bytes_;
  if (rank_ == 1 && together) {
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(result, begin, last.size * element_bytes_, cudaMemcpyDeviceToDevice, stream));
    return absl::OkStatus();
  }
  if (tiled_ >= 0) return RunTiles(stream, begin, result);
  // Whole rows in the largest units that all rows begin with and end with.
  const bool collects = !together && last.to == element_bytes_;
  int64_t unit = element_bytes_;
  if (together || collects) {
    unit = UnitOf({last.size * element_bytes_, AddressOf(result),
                 together ? AddressOf(begin) : 0});
    for (int i = 0; i + 1 < rank_; ++i) unit = UnitOf({unit, axes_[i].to, together ? axes_[i].from : 0});
    if (collects && unit < 16) unit = element_bytes_;
  }
  const int64_t in_unit = unit / element_bytes_;
  const bool collected = collects && in_unit > 1;
  // `from` is counted in units where units are read, else in elements; `to` likewise.
  const int64_t from_unit = collected ? element_bytes_ : unit;
  Axes axes{.rank = rank_};
  for (int i = 0; i < rank_; ++i) {
    axes.sizes[i] = static_cast<uint32_t>(axes_[i].size);
    axes.from[i] = axes_[i].from / from_unit;
    axes.to[i] = axes_[i].to / from_unit;
  }
  if (in_unit > 1) {
    axes.sizes[rank_ - 1] = static_cast<uint32_t>(last.size / in_unit);
    axes.from[rank_ - 1] = collected ? last.from / element_bytes_ * in_unit : 1;
    axes.to[rank_ - 1] = collected ? in_unit : 1;
  }
  const auto units = static_cast<uint32_t>(elements_ / in_unit);
  if (!collected) {
    return ForUnit(unit, [&](auto zero) {
      using U = decltype(zero);
      return Launch(CopyUnits<U>, BlocksFor(units), kThreads, stream, reinterpret_cast<const U*>(begin),
                    reinterpret_cast<U*>(result), axes, units);
    });
  }
  return ForUnit(element_bytes_, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    return Launch(CollectUnits<T>, BlocksFor(units), kThreads, stream, reinterpret_cast<const T*>(begin),
                  reinterpret_cast<T*>(result), axes, last.from / element_bytes_, units);
  });
}

absl::Status StridedCopy::RunTiles(cudaStream_t stream, const std::byte* from, std::byte* to) const {
  const Axis &columns = axes_[rank_ - 1], &rows = axes_[tiled_];
  Axes outer{.rank = 0};
  int64_t count = 1;
  for (int i = 0; i + 1 < rank_; ++i) {
    if (i == tiled_) continue;
    outer.sizes[outer.rank] = static_cast<uint32_t>(axes_[i].size);
    outer.from[outer.rank] = axes_[i].from / element_bytes_;
    outer.to[outer.rank++] = axes_[i].to / element_bytes_;
    count *= axes_[i].size;
  }
  const auto tiles_of = [](int64_t size) { return static_cast<uint32_t>((size + kTile - 1) / kTile); };
  Tiles tiles{rows.size,
              columns.size,
              columns.from / element_bytes_,
              rows.to / element_bytes_,
              tiles_of(rows.size),
              tiles_of(columns.size),
              0};
  // Fits: of axes of 8 and more, tiles have at most 16 places for each element, of which there are fewer than 2^32.
  tiles.count = static_cast<uint32_t>(count * tiles.row_tiles * tiles.column_tiles);
  return ForUnit(element_bytes_, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    return Launch(CopyTiles<T>, dim3(std::min<uint32_t>(tiles.count, 1 << 16)), kThreads, stream,
                  reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), outer, tiles);
  });
}

}  // namespace pipec::cuda
