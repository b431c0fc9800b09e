// Operands (samples, channels, places) on the GPU: where an element's channel is, and sums over channels. Sums are
// in float64, in an order that the shape alone decides.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/row_walk.cuh"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {

// kLanes elements next to each other: one, or as many as one instruction loads or stores, 16 bytes at most.
template <int kLanes, typename T>
struct Lanes {
  T values[kLanes];
};
template <int kLanes, typename T>
__device__ __forceinline__ Lanes<kLanes, T> LoadLanes(const T* at) {
  const Vector<T, kLanes> vector = LoadElements<kLanes>(at);
  Lanes<kLanes, T> lanes;
#pragma unroll
  for (int k = 0; k < kLanes; ++k) lanes.values[k] = vector.values[k];
  return lanes;
}
template <int kLanes, typename T>
__device__ __forceinline__ void StoreLanes(T* at, const Lanes<kLanes, T>& lanes) {
  Vector<T, kLanes> vector;
#pragma unroll
  for (int k = 0; k < kLanes; ++k) vector.values[k] = lanes.values[k];
  StoreVector(at, vector);
}

// Whether a row of places is so many elements taken at once, wherever it begins in operands that are aligned.
template <int kLanes>
bool RowsAreVectors(const AxisView& view) {
  return view.inner % kLanes == 0;
}

struct TwoSums {
  double first, second;
};

// How many blocks share a channel.
inline int64_t SplitsOf(const AxisView& view) {
  const int64_t wanted = view.outer * view.inner / (kThreads * 16),
                most = 1024 / std::max<int64_t>(view.length, 1);
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(most, 1));
}
inline int64_t SumsBytes(const AxisView& view) {
  return view.length * SplitsOf(view) * static_cast<int64_t>(sizeof(TwoSums));
}

// partial[channel * splits + split]: what terms.Add<kLanes>(element, channel, sums) adds for every kLanes elements
// of the channel.
template <int kLanes, typename Terms>
__global__ void __launch_bounds__(kThreads)
    SumChannels(const Terms terms, const AxisView view, int64_t splits, TwoSums* partial) {
  if (terms.Unwanted()) return;
  const int64_t items = view.inner / kLanes;
  for (int64_t channel = blockIdx.y; channel < view.length; channel += gridDim.y) {
    TwoSums sums{0, 0};
    for (RowWalk walk(FirstThread(), AllThreads(), items); walk.row() < view.outer; walk.Next()) {
      const int64_t row = walk.row() * view.length + channel;
      terms.template Add<kLanes>(row * view.inner + walk.item() * kLanes, channel, sums);
    }
    sums.first = FoldThreads<SumOf, kThreads>(sums.first, 0.0);
    sums.second = FoldThreads<SumOf, kThreads>(sums.second, 0.0);
    if (threadIdx.x == 0) partial[channel * splits + blockIdx.x] = sums;
  }
}

// The channel's, from all its blocks.
__device__ __forceinline__ TwoSums SumOfSplits(const TwoSums* partial, int64_t channel, int64_t splits) {
  TwoSums sums{0, 0};
  for (int64_t split = 0; split < splits; ++split) {
    sums.first += partial[channel * splits + split].first;
    sums.second += partial[channel * splits + split].second;
  }
  return sums;
}

// `wide`: rows are kLanes elements taken at once, and every operand is aligned.
template <int kLanes, typename Terms>
absl::Status LaunchSums(cudaStream_t stream, const Terms& terms, const AxisView& view, bool wide,
                        TwoSums* partial) {
  const int64_t splits = SplitsOf(view);
  const dim3 blocks(static_cast<unsigned>(splits),
                    static_cast<unsigned>(std::min<int64_t>(view.length, 1 << 15)));
  return Launch(wide ? SumChannels<kLanes, Terms> : SumChannels<1, Terms>, blocks, kThreads, stream, terms,
                view, splits, partial);
}

}  // namespace pipec::cuda
