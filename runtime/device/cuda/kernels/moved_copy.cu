#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/moved_copy.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

struct Dims {
  int depth, height, width;
};
Dims Narrowed(const std::array<int64_t, 3>& dims) {
  return {static_cast<int>(dims[0]), static_cast<int>(dims[1]), static_cast<int>(dims[2])};
}

// A row of blocks a plane.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    MovePlanes(int64_t planes, int64_t channels, const T* from, const Dims from_dims, const T* bias, T* to,
               const Dims to_dims, const Dims shift) {
  const int places = to_dims.depth * to_dims.height * to_dims.width;
  for (int64_t plane = blockIdx.y; plane < planes; plane += gridDim.y) {
    const T* const from_plane = from + plane * from_dims.depth * from_dims.height * from_dims.width;
    T* const to_plane = to + plane * places;
    const T outside = bias == nullptr ? static_cast<T>(0) : bias[plane % channels];
    for (int64_t place = FirstItem(); place < places; place += ItemStride()) {
      const int i = static_cast<int>(place), line = i / to_dims.width;
      const int w = i - line * to_dims.width + shift.width;
      const int h = line % to_dims.height + shift.height, d = line / to_dims.height + shift.depth;
      const bool inside =
          w >= 0 && w < from_dims.width && h >= 0 && h < from_dims.height && d >= 0 && d < from_dims.depth;
      to_plane[i] = inside ? from_plane[(d * from_dims.height + h) * from_dims.width + w] : outside;
    }
  }
}

// A row of blocks a channel of a sample. Lane: T, or 16 bytes of them.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kThreads)
    FillRows(const T* bias, T* y, int64_t rows, int64_t channels, int64_t places) {
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const T value = bias == nullptr ? static_cast<T>(0) : bias[row % channels];
    for (int64_t i = FirstItem(); i < places / kLanes; i += ItemStride()) {
      if constexpr (kLanes == 1) {
        y[row * places + i] = value;
      } else {
        Vector<T> all;
#pragma unroll
        for (T& own : all.values) own = value;
        StoreVector(y + row * places + i * kLanes, all);
      }
    }
  }
}

dim3 RowsOfBlocks(int64_t items, int64_t rows) {
  return dim3(BlocksFor(items).x, static_cast<unsigned>(std::min<int64_t>(rows, 1 << 15)));
}

// run(T()) with an integer of the elements' size: their zero is 0.
template <typename Run>
absl::Status ForSizeOf(DType dtype, const Run& run) {
  if (SizeOf(dtype) == 2) return run(uint16_t{});
  return SizeOf(dtype) == 4 ? run(uint32_t{}) : run(uint64_t{});
}

}  // namespace

absl::Status CopyMoved(cudaStream_t stream, DType dtype, const MovedPlanes& planes, const void* from,
                       const void* bias, void* to) {
  return ForSizeOf(dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t count = planes.batch * planes.channels;
    return Launch(MovePlanes<T>, RowsOfBlocks(planes.to[0] * planes.to[1] * planes.to[2], count), kThreads,
                  stream, count, planes.channels, static_cast<const T*>(from), Narrowed(planes.from),
                  static_cast<const T*>(bias), static_cast<T*>(to), Narrowed(planes.to),
                  Narrowed(planes.shift));
  });
}

absl::Status FillChannels(cudaStream_t stream, DType dtype, const void* bias, void* y, int64_t batch,
                          int64_t channels, int64_t places) {
  return ForSizeOf(dtype, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    constexpr int kLanes = Vector<T>::kSize;
    const int64_t rows = batch * channels;
    if (rows * places == 0) return absl::OkStatus();
    const bool wide = places % kLanes == 0 && Aligned(y);
    return Launch(wide ? FillRows<T, kLanes> : FillRows<T, 1>,
                  RowsOfBlocks(wide ? places / kLanes : places, rows), kThreads, stream,
                  static_cast<const T*>(bias), static_cast<T*>(y), rows, channels, places);
  });
}

}  // namespace pipec::cuda
