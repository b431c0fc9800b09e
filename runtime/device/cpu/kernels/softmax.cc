// Softmax, LogSoftmax (X) -> (Y) and SoftmaxGrad, LogSoftmaxGrad (dY, Y) -> (dX) along one axis. The result
// may lie where an operand lies. Softmax of float32 along the last axis is oneDNN's. Otherwise rows that lie
// together are folded in lanes (lanes.h); along another axis than the last, kColumns columns go side by side,
// each from its first element to its last.
#include <algorithm>
#include <limits>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/onednn_element.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kColumns = 64;

template <typename T>
struct Softmax {
  static PIPEC_INLINE void Row(const T* x, T* y, int64_t n) {
    const T largest = LargestOf(x, n);
    const T sum = Sum<T>(n, [=](int64_t i) { return y[i] = Exp(x[i] - largest); });
    const T scale = T{1} / sum;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
  static PIPEC_INLINE T LargestOf(const T* x, int64_t n) {
    return Fold(
        n, -std::numeric_limits<T>::infinity(), [](T a, T b) { return a < b ? b : a; },
        [=](int64_t i) { return x[i]; });
  }
  // Of one element, once the largest of its row and the sum of the row's exponentials are known.
  static PIPEC_INLINE T Of(T x, T largest, T sum) { return Exp(x - largest) / sum; }
};

template <typename T>
struct LogSoftmax {
  static PIPEC_INLINE void Row(const T* x, T* y, int64_t n) {
    const T largest = Softmax<T>::LargestOf(x, n);
    const T log_sum = Log(Sum<T>(n, [=](int64_t i) { return Exp(x[i] - largest); }));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - largest - log_sum;
  }
  static PIPEC_INLINE T Of(T x, T largest, T sum) { return x - largest - Log(sum); }
};

template <typename T>
struct SoftmaxGrad {
  static PIPEC_INLINE T Term(T dy, T y) { return dy * y; }
  static PIPEC_INLINE T Of(T dy, T y, T sum) { return y * (dy - sum); }
};

template <typename T>
struct LogSoftmaxGrad {
  static PIPEC_INLINE T Term(T dy, T) { return dy; }
  static PIPEC_INLINE T Of(T dy, T y, T sum) { return dy - Exp(y) * sum; }
};

// Columns i .. i + width of the block that starts at x; `stride` elements from one row to the next.
template <typename Op, typename T>
void Columns(const T* x, T* y, int64_t length, int64_t stride, int64_t width) {
  T largest[kColumns], sum[kColumns];
  for (int64_t i = 0; i < width; ++i) largest[i] = -std::numeric_limits<T>::infinity(), sum[i] = 0;
  for (int64_t l = 0; l < length; ++l) {
    for (int64_t i = 0; i < width; ++i) largest[i] = std::max(largest[i], x[l * stride + i]);
  }
  for (int64_t l = 0; l < length; ++l) {
    for (int64_t i = 0; i < width; ++i) sum[i] += Exp(x[l * stride + i] - largest[i]);
  }
  for (int64_t l = 0; l < length; ++l) {
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) y[l * stride + i] = Op::Of(x[l * stride + i], largest[i], sum[i]);
  }
}

template <typename Op, typename T>
void GradColumns(const T* dy, const T* y, T* dx, int64_t length, int64_t stride, int64_t width) {
  T sum[kColumns];
  for (int64_t i = 0; i < width; ++i) sum[i] = 0;
  for (int64_t l = 0; l < length; ++l) {
    for (int64_t i = 0; i < width; ++i) sum[i] += Op::Term(dy[l * stride + i], y[l * stride + i]);
  }
  for (int64_t l = 0; l < length; ++l) {
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) {
      dx[l * stride + i] = Op::Of(dy[l * stride + i], y[l * stride + i], sum[i]);
    }
  }
}

// rows(offset): the row of view.length elements there. columns(offset, width): `width` columns side by side.
template <typename Rows, typename ColumnBlocks>
void ForEachRow(const AxisView& view, const Rows& rows, const ColumnBlocks& columns) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, view.length));
  if (view.inner == 1) {
    ParallelFor(view.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) rows(row * view.length);
    });
    return;
  }
  const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
  ParallelFor(view.outer * blocks, std::max<int64_t>(1, grain / kColumns), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t column = k % blocks * kColumns;
      columns(k / blocks * view.length * view.inner + column, std::min(kColumns, view.inner - column));
    }
  });
}

// Before opset 13 the default axis was 1 and the meaning another: import rewrites those.
absl::StatusOr<AxisView> Axis(const KernelSpec& spec, int inputs) {
  RETURN_IF_ERROR(CheckOperands(spec, {inputs, inputs}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  if (type.shape.empty()) return AxisView{};
  return ViewAlong(type.shape, spec.attributes.Int("axis", -1));
}

template <template <typename> class Op, bool kOneDnn>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const AxisView view, Axis(spec, 1));
  const TensorType& type = spec.inputs[0].type;
  if (kOneDnn && type.dtype == DType::kFloat32 && view.inner == 1 && type.elements() > 0) {
    return MakeOneDnnSoftmax(view.outer, view.length);
  }
  return ForFloats(spec, spec.inputs[0].type.dtype, [view](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [view](const KernelArguments& arguments) {
      const T* x = Input<T>(arguments, 0);
      T* y = Output<T>(arguments, 0);
      ForEachRow(
          view, [=](int64_t at) { Op<T>::Row(x + at, y + at, view.length); },
          [=](int64_t at, int64_t width) { Columns<Op<T>>(x + at, y + at, view.length, view.inner, width); });
      return absl::OkStatus();
    });
  });
}

template <template <typename> class Op>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const AxisView view, Axis(spec, 2));
  return ForFloats(spec, spec.inputs[0].type.dtype, [view](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [view](const KernelArguments& arguments) {
      const T* dy = Input<T>(arguments, 0);
      const T* y = Input<T>(arguments, 1);
      T* dx = Output<T>(arguments, 0);
      const int64_t n = view.length;
      ForEachRow(
          view,
          [=](int64_t at) {
            const T sum = Sum<T>(n, [=](int64_t i) { return Op<T>::Term(dy[at + i], y[at + i]); });
#pragma GCC ivdep
            for (int64_t i = at; i < at + n; ++i) dx[i] = Op<T>::Of(dy[i], y[i], sum);
          },
          [=](int64_t at, int64_t width) {
            GradColumns<Op<T>>(dy + at, y + at, dx + at, n, view.inner, width);
          });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Add("Softmax", "", Prepare<Softmax, true>);
  registry.Add("LogSoftmax", "", Prepare<LogSoftmax, false>);
  registry.Add("SoftmaxGrad", kPipecDomain, PrepareGrad<SoftmaxGrad>);
  registry.Add("LogSoftmaxGrad", kPipecDomain, PrepareGrad<LogSoftmaxGrad>);
}

}  // namespace pipec::cpu
