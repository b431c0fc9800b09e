// MaxPool (X) -> (Y, Indices?), AveragePool and LpPool (X) -> (Y) over 1 to 3 spatial axes, and the global forms,
// whose one window is all of them. Own kernels, not cuDNN's: those know no dilation, no padding that differs
// between the ends, no last window of ceil_mode, and no indices, from which the gradient of MaxPool is made.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/row_walk.cuh"
#include "runtime/device/cuda/kernels/window_walk.cuh"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/pooling.h"

namespace pipec::cuda {
namespace {

// Kinds of pooling: what a window begins with, how two parts of it become one, what it gives.
struct Greatest {
  template <typename C>
  __device__ C First() const {
    return static_cast<C>(-INFINITY);
  }
  template <typename C>
  __device__ C Term(C x) const {
    return x;
  }
  template <typename C>
  static __device__ C Combine(C a, C b) {
    return b > a || b != b ? b : a;  // NaN wins
  }
  template <typename C>
  __device__ C Finish(C all, int64_t) const {
    return all;
  }
};

struct Average {
  template <typename C>
  __device__ C First() const {
    return C(0);
  }
  template <typename C>
  __device__ C Term(C x) const {
    return x;
  }
  template <typename C>
  static __device__ C Combine(C a, C b) {
    return a + b;
  }
  template <typename C>
  __device__ C Finish(C all, int64_t counted) const {
    return all / static_cast<C>(counted);
  }
};

struct PowerNorm {
  int64_t p;
  template <typename C>
  __device__ C First() const {
    return C(0);
  }
  template <typename C>
  __device__ C Term(C x) const {
    if (p == 1) return fabs(x);
    return p == 2 ? x * x : pow(fabs(x), static_cast<C>(p));
  }
  template <typename C>
  static __device__ C Combine(C a, C b) {
    return a + b;
  }
  template <typename C>
  __device__ C Finish(C all, int64_t) const {
    if (p == 1) return all;
    return p == 2 ? sqrt(all) : pow(all, C(1) / static_cast<C>(p));
  }
};

// A thread a window.
template <typename T, typename Kind>
__global__ void __launch_bounds__(kThreads)
    PoolWindows(const Kind kind, const DeviceWindows windows, bool count_padding, int64_t planes, const T* x,
                T* y) {
  using C = Compute<T>;
  const auto& [depth, height, width] = windows;
  const int in = depth.in * height.in * width.in, out = depth.out * height.out * width.out;
  for (RowWalk walk(FirstThread(), AllThreads(), out); walk.row() < planes; walk.Next()) {
    const int64_t plane = walk.row(), at = plane * out + walk.item();
    const int window = static_cast<int>(walk.item()), line = window / width.out;
    const int d = depth.Start(line / height.out), h = height.Start(line % height.out),
              w = width.Start(window - line * width.out);
    const T* const from = x + plane * in;
    C all = kind.template First<C>();
    ForEachTap(windows, d, h, w,
               [&](int place) { all = Kind::Combine(all, kind.Term(static_cast<C>(Widen(from[place])))); });
    const int counted =
        depth.Counted(d, count_padding) * height.Counted(h, count_padding) * width.Counted(w, count_padding);
    y[at] = Narrow<T>(kind.Finish(all, max(counted, 1)));
  }
}

// The same of the greatest, with where in X the first of them lies; 0 in its plane for a window in the padding alone.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PoolGreatest(const DeviceWindows windows, int64_t planes, const T* x, T* y, int64_t* indices,
                 bool column_major) {
  using C = Compute<T>;
  const auto& [depth, height, width] = windows;
  const int in = depth.in * height.in * width.in, out = depth.out * height.out * width.out;
  for (RowWalk walk(FirstThread(), AllThreads(), out); walk.row() < planes; walk.Next()) {
    const int64_t plane = walk.row(), at = plane * out + walk.item();
    const int window = static_cast<int>(walk.item()), line = window / width.out;
    const T* const from = x + plane * in;
    C best = static_cast<C>(-INFINITY);
    int index = -1;
    ForEachTap(windows, depth.Start(line / height.out), height.Start(line % height.out),
               width.Start(window - line * width.out), [&](int place) {
                 const C value = Widen(from[place]);
                 if (!(value > best || value != value || index < 0)) return;
                 best = value;
                 index = place;
               });
    index = max(index, 0);
    if (column_major) {
      const int own_line = index / width.in;
      index = ((index - own_line * width.in) * height.in + own_line % height.in) * depth.in +
              own_line / height.in;
    }
    y[at] = Narrow<T>(best);
    indices[at] = plane * in + index;
  }
}

// One window over everything: kSize threads a plane, whose parts are combined in the same order always.
template <typename T, typename Kind, int kSize>
__global__ void __launch_bounds__(kSize)
    PoolPlanes(const Kind kind, int64_t planes, int64_t places, const T* x, T* y) {
  using C = Compute<T>;
  for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
    const T* const from = x + plane * places;
    C all = kind.template First<C>();
    for (int64_t i = threadIdx.x; i < places; i += kSize)
      all = Kind::Combine(all, kind.Term(static_cast<C>(Widen(from[i]))));
    all = FoldThreads<Kind, kSize>(all, kind.template First<C>());
    if (threadIdx.x == 0) y[plane] = Narrow<T>(kind.Finish(all, places));
  }
}

constexpr int64_t kFewPlaces = 1024;  // for which a warp is enough

template <typename Kind>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const KernelSpec& spec, const Pooling& pooling, bool global,
                                                 const Kind& kind) {
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  if (!global) RETURN_IF_ERROR(CheckPlaneFits(spec, pooling.windows));
  const int64_t results = y.elements(), planes = pooling.planes, places = pooling.windows.places();
  return ForAllFloats(spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (results == 0) return absl::OkStatus();
      const T* const x = Input<T>(arguments, 0);
      T* const y = Output<T>(arguments, 0);
      if (!global) {
        return Launch(PoolWindows<T, Kind>, BlocksFor(results), kThreads, stream, kind,
                      OnDevice(pooling.windows), pooling.count_padding, planes, x, y);
      }
      const dim3 blocks(static_cast<unsigned>(std::min<int64_t>(planes, 1 << 20)));
      if (places <= kFewPlaces)
        return Launch(PoolPlanes<T, Kind, 32>, blocks, 32, stream, kind, planes, places, x, y);
      return Launch(PoolPlanes<T, Kind, kThreads>, blocks, kThreads, stream, kind, planes, places, x, y);
    });
  });
}

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareMax(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1, 1, kGlobal ? 1 : 2}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  if (!HasOutput(spec, 1)) return MakePool(spec, pooling, kGlobal, Greatest{});
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (pooling.windows.places() == 0) return Invalid(spec, "there is nothing to pool");
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, y.shape}));
  RETURN_IF_ERROR(CheckPlaneFits(spec, pooling.windows));
  const int64_t results = y.elements();
  return ForAllFloats(spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (results == 0) return absl::OkStatus();
      return Launch(PoolGreatest<T>, BlocksFor(results), kThreads, stream, OnDevice(pooling.windows),
                    pooling.planes, Input<T>(arguments, 0), Output<T>(arguments, 0),
                    Output<int64_t>(arguments, 1), pooling.column_major);
    });
  });
}

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareAverage(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  return MakePool(spec, pooling, kGlobal, Average{});
}

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLp(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  if (pooling.p < 1) return Invalid(spec, absl::StrCat("attribute p is ", pooling.p, ", wanted 1 or more"));
  return MakePool(spec, pooling, kGlobal, PowerNorm{pooling.p});
}

}  // namespace

void RegisterPoolKernels(KernelRegistry& registry) {
  registry.Add("AveragePool", "", PrepareAverage<false>);
  registry.Add("GlobalAveragePool", "", PrepareAverage<true>);
  registry.Add("GlobalLpPool", "", PrepareLp<true>);
  registry.Add("GlobalMaxPool", "", PrepareMax<true>);
  registry.Add("LpPool", "", PrepareLp<false>);
  registry.Add("MaxPool", "", PrepareMax<false>);
}

}  // namespace pipec::cuda
