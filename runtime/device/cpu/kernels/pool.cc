// MaxPool (X) -> (Y, Indices?), AveragePool and LpPool (X) -> (Y) over 1 to 3
// spatial axes, and the global forms, whose one window is all of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/operands/pooling.h"

namespace pipec::cpu {
namespace {

// f(row of Y, its plane, its first tap's place along depth and height) for all
// rows, in parallel.
template <typename F>
void ForEachRow(const Pooling &pooling, const F &f) {
  const auto &[depth, height, width] = pooling.windows.axes;
  const int64_t grain = kElementGrain / std::max<int64_t>(1, width.out * pooling.windows.taps());
  ParallelFor(pooling.planes * depth.out * height.out, std::max<int64_t>(1, grain),
              [&, &depth = depth, &height = height](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  f(row, row / (height.out * depth.out), depth.Start(row / height.out % depth.out),
                    height.Start(row % height.out));
                }
              });
}

// f(offset in the plane, tap along the width, first window, end) for the runs
// of windows of one row that read inside.
template <typename F>
PIPEC_INLINE void ForEachTap(const Windows &windows, int64_t d_start, int64_t h_start, const F &f) {
  const auto &[depth, height, width] = windows.axes;
  for (int64_t kd = depth.FirstTap(d_start); kd < depth.EndTap(d_start); ++kd) {
    for (int64_t kh = height.FirstTap(h_start); kh < height.EndTap(h_start); ++kh) {
      const int64_t line = (d_start + kd * depth.dilation) * height.in + h_start + kh * height.dilation;
      for (int64_t kw = 0; kw < width.kernel; ++kw) {
        f(line * width.in + kw * width.dilation - width.before, width.FirstWindow(kw), width.EndWindow(kw));
      }
    }
  }
}

// y[i] = combine(... combine(first, x of the first tap) ..., x of the last), a
// row at a time.
template <typename T, typename Combine>
PIPEC_INLINE void PoolRow(const Windows &windows, const T *plane, int64_t d_start, int64_t h_start, T first,
                          T *y, const Combine &combine) {
  const int64_t stride = windows.axes[2].stride;
  std::fill_n(y, windows.axes[2].out, first);
  ForEachTap(windows, d_start, h_start, [&](int64_t place, int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = combine(y[i], plane[i * stride + place]);
  });
}

template <typename T>
constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::lowest();

template <typename T>
void MaxPool(const Pooling &pooling, const void *x, void *y) {
  ForEachRow(pooling, [&](int64_t row, int64_t plane, int64_t d_start, int64_t h_start) {
    PoolRow(pooling.windows, static_cast<const T *>(x) + plane * pooling.windows.places(), d_start, h_start,
            kLeast<T>, static_cast<T *>(y) + row * pooling.windows.axes[2].out,
            [](T a, T b) { return b > a || b != b ? b : a; });  // NaN wins
  });
}

// The same with where in X the first of the greatest lies.
template <typename T>
void MaxPoolWithIndices(const Pooling &pooling, const void *x, void *y, int64_t *indices) {
  const auto &[depth, height, width] = pooling.windows.axes;
  const int64_t places = pooling.windows.places();
  ForEachRow(pooling, [&, &depth = depth, &height = height, &width = width](
                          int64_t row, int64_t plane, int64_t d_start, int64_t h_start) {
    const T *const from = static_cast<const T *>(x) + plane * places;
    T *const to = static_cast<T *>(y) + row * width.out;
    int64_t *const index = indices + row * width.out;
    std::fill_n(to, width.out, kLeast<T>);
    std::fill_n(index, width.out, int64_t{-1});
    ForEachTap(pooling.windows, d_start, h_start, [&](int64_t place, int64_t begin, int64_t end) {
      const int64_t stride = width.stride;
      // No branch: which tap is the greatest cannot be predicted.
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const T value = from[i * stride + place];
        const bool take = (value > to[i]) | (value != value) | (index[i] < 0);
        to[i] = take ? value : to[i];
        index[i] = take ? i * stride + place : index[i];
      }
    });
    for (int64_t i = 0; i < width.out; ++i) {
      if (index[i] < 0) index[i] = 0;  // a window in the padding alone
      if (pooling.column_major) {
        const int64_t w = index[i] % width.in, h = index[i] / width.in % height.in,
                      d = index[i] / width.in / height.in;
        index[i] = pooling.windows.rank == 1   ? w
                   : pooling.windows.rank == 2 ? w * height.in + h
                                               : (w * height.in + h) * depth.in + d;
      }
      index[i] += plane * places;
    }
  });
}

template <typename T>
void AveragePool(const Pooling &pooling, const void *x, void *y) {
  const Windows &windows = pooling.windows;
  ForEachRow(pooling, [&](int64_t row, int64_t plane, int64_t d_start, int64_t h_start) {
    const WindowAxis &width = windows.axes[2];
    T *const to = static_cast<T *>(y) + row * width.out;
    PoolRow(windows, static_cast<const T *>(x) + plane * windows.places(), d_start, h_start, T{0}, to,
            [](T a, T b) { return a + b; });
    const int64_t lines = pooling.Counted(windows.axes[0], d_start) * pooling.Counted(windows.axes[1], h_start);
    for (int64_t i = 0; i < width.out; ++i) {
      to[i] /= static_cast<T>(std::max<int64_t>(lines * pooling.Counted(width, width.Start(i)), 1));
    }
  });
}

// One window over everything: a plane is a row.
template <typename T>
void GlobalAveragePool(const Pooling &pooling, const void *x, void *y) {
  const int64_t n = pooling.windows.places();
  ParallelFor(pooling.planes, std::max<int64_t>(1, kElementGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const T *const from = static_cast<const T *>(x) + plane * n;
      static_cast<T *>(y)[plane] = Sum<T>(n, [from](int64_t i) { return from[i]; }) / static_cast<T>(n);
    }
  });
}

template <typename T>
void LpPool(const Pooling &pooling, const void *x, void *y) {
  const T p = static_cast<T>(pooling.p);
  ForEachRow(pooling, [&](int64_t row, int64_t plane, int64_t d_start, int64_t h_start) {
    const int64_t n = pooling.windows.axes[2].out;
    const T *const from = static_cast<const T *>(x) + plane * pooling.windows.places();
    T *const to = static_cast<T *>(y) + row * n;
    if (pooling.p == 1) {
      PoolRow(pooling.windows, from, d_start, h_start, T{0}, to, [](T a, T b) { return a + std::fabs(b); });
    } else if (pooling.p == 2) {
      PoolRow(pooling.windows, from, d_start, h_start, T{0}, to, [](T a, T b) { return a + b * b; });
      for (int64_t i = 0; i < n; ++i) to[i] = std::sqrt(to[i]);
    } else {
      PoolRow(pooling.windows, from, d_start, h_start, T{0}, to,
              [p](T a, T b) { return a + std::pow(std::fabs(b), p); });
      for (int64_t i = 0; i < n; ++i) to[i] = std::pow(to[i], 1 / p);
    }
  });
}

using PoolLoop = void (*)(const Pooling &pooling, const void *x, void *y);

absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const KernelSpec &spec, const Pooling &pooling,
                                                 PoolLoop loop) {
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  return MakeKernel(0, [pooling, loop](const KernelArguments &arguments) {
    loop(pooling, arguments.inputs[0], arguments.outputs[0]);
    return absl::OkStatus();
  });
}

using MaxTypes = TypeList<float, double, int8_t, uint8_t>;

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareMax(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1, .max_outputs = kGlobal ? 1 : 2}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (!HasOutput(spec, 1)) {
    return MakePool(spec, pooling, ForType<PoolLoop>(MaxTypes(), x.dtype, [](auto t) -> PoolLoop {
                      return MaxPool<typename decltype(t)::type>;
                    }));
  }
  if (pooling.windows.places() == 0) return Invalid(spec, "there is nothing to pool");
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, y.shape}));
  using Loop = void (*)(const Pooling &, const void *, void *, int64_t *);
  const auto loop = ForType<Loop>(
      MaxTypes(), x.dtype, [](auto t) -> Loop { return MaxPoolWithIndices<typename decltype(t)::type>; });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  return MakeKernel(0, [pooling, loop](const KernelArguments &arguments) {
    loop(pooling, arguments.inputs[0], arguments.outputs[0], Output<int64_t>(arguments, 1));
    return absl::OkStatus();
  });
}

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareAverage(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  return MakePool(spec, pooling,
                  ForType<PoolLoop>(Floats(), spec.inputs[0].type.dtype, [](auto t) -> PoolLoop {
                    using T = typename decltype(t)::type;
                    return kGlobal ? GlobalAveragePool<T> : AveragePool<T>;
                  }));
}

template <bool kGlobal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLp(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, kGlobal));
  if (pooling.p < 1) return Invalid(spec, absl::StrCat("attribute p is ", pooling.p, ", wanted 1 or more"));
  return MakePool(spec, pooling,
                  ForType<PoolLoop>(Floats(), spec.inputs[0].type.dtype,
                                    [](auto t) -> PoolLoop { return LpPool<typename decltype(t)::type>; }));
}

}  // namespace

void RegisterPoolKernels(KernelRegistry &registry) {
  registry.Add("AveragePool", "", PrepareAverage<false>);
  registry.Add("GlobalAveragePool", "", PrepareAverage<true>);
  registry.Add("GlobalLpPool", "", PrepareLp<true>);
  registry.Add("GlobalMaxPool", "", PrepareMax<true>);
  registry.Add("LpPool", "", PrepareLp<false>);
  registry.Add("MaxPool", "", PrepareMax<false>);
}

}  // namespace pipec::cpu
