// Softmax, LogSoftmax (X) -> (Y) and SoftmaxGrad, LogSoftmaxGrad (dY, Y) -> (dX) along one axis. The result may lie
// where an operand lies. A block a row, of one warp where the row is short.
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {
namespace {

constexpr int64_t kWarpRow = 1024;  // elements that one warp still takes

// Element i of row r lies at First(r) + i * inner.
struct Rows {
  int64_t rows, length, inner;
  __device__ int64_t First(int64_t row) const { return row / inner * length * inner + row % inner; }
};

template <bool kLog, typename T, int kWidth>
__global__ void __launch_bounds__(kWidth) SoftmaxRows(const T* x, T* y, const Rows rows) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    const int64_t first = rows.First(row);
    C largest = static_cast<C>(-INFINITY);
    for (int64_t i = threadIdx.x; i < rows.length; i += kWidth) {
      largest = MaxOf::Combine(largest, Widen(x[first + i * rows.inner]));
    }
    largest = FoldThreads<MaxOf, kWidth>(largest, static_cast<C>(-INFINITY));
    C sum = 0;
    for (int64_t i = threadIdx.x; i < rows.length; i += kWidth)
      sum += exp(Widen(x[first + i * rows.inner]) - largest);
    sum = FoldThreads<SumOf, kWidth>(sum, C(0));
    const C factor = kLog ? log(sum) : C(1) / sum;
    for (int64_t i = threadIdx.x; i < rows.length; i += kWidth) {
      const int64_t at = first + i * rows.inner;
      const C shifted = Widen(x[at]) - largest;
      y[at] = Narrow<T>(kLog ? shifted - factor : exp(shifted) * factor);
    }
  }
}

// dX = Y (dY - sum of dY Y); of the logarithm: dY - exp(Y) sum of dY.
template <bool kLog, typename T, int kWidth>
__global__ void __launch_bounds__(kWidth) GradientRows(const T* dy, const T* y, T* dx, const Rows rows) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    const int64_t first = rows.First(row);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < rows.length; i += kWidth) {
      const int64_t at = first + i * rows.inner;
      sum += kLog ? Widen(dy[at]) : Widen(dy[at]) * Widen(y[at]);
    }
    sum = FoldThreads<SumOf, kWidth>(sum, C(0));
    for (int64_t i = threadIdx.x; i < rows.length; i += kWidth) {
      const int64_t at = first + i * rows.inner;
      const C d = Widen(dy[at]), value = Widen(y[at]);
      dx[at] = Narrow<T>(kLog ? d - exp(value) * sum : value * (d - sum));
    }
  }
}

absl::StatusOr<Rows> RowsOf(const KernelSpec& spec, int inputs) {
  RETURN_IF_ERROR(CheckOperands(spec, {inputs, inputs}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  if (type.shape.empty()) return Rows{1, 1, 1};
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(type.shape, spec.attributes.Int("axis", -1)));
  return Rows{view.outer * view.inner, view.length, view.inner};
}

dim3 BlocksOf(const Rows& rows) { return dim3(static_cast<unsigned>(std::min<int64_t>(rows.rows, 1 << 20))); }

template <bool kLog>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const Rows rows, RowsOf(spec, 1));
  return ForAllFloats(spec, spec.inputs[0].type.dtype, [rows](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [rows](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (rows.rows * rows.length == 0) return absl::OkStatus();
      const T* const x = Input<T>(arguments, 0);
      T* const y = Output<T>(arguments, 0);
      if (rows.length <= kWarpRow) {
        return Launch(SoftmaxRows<kLog, T, 32>, BlocksOf(rows), 32, stream, x, y, rows);
      }
      return Launch(SoftmaxRows<kLog, T, kThreads>, BlocksOf(rows), kThreads, stream, x, y, rows);
    });
  });
}

template <bool kLog>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const Rows rows, RowsOf(spec, 2));
  return ForAllFloats(spec, spec.inputs[0].type.dtype, [rows](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [rows](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (rows.rows * rows.length == 0) return absl::OkStatus();
      const T *const dy = Input<T>(arguments, 0), *const y = Input<T>(arguments, 1);
      T* const dx = Output<T>(arguments, 0);
      if (rows.length <= kWarpRow) {
        return Launch(GradientRows<kLog, T, 32>, BlocksOf(rows), 32, stream, dy, y, dx, rows);
      }
      return Launch(GradientRows<kLog, T, kThreads>, BlocksOf(rows), kThreads, stream, dy, y, dx, rows);
    });
  });
}

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Add("Softmax", "", Prepare<false>);
  registry.Add("LogSoftmax", "", Prepare<true>);
  registry.Add("SoftmaxGrad", kPipecDomain, PrepareGrad<false>);
  registry.Add("LogSoftmaxGrad", kPipecDomain, PrepareGrad<true>);
}

}  // namespace pipec::cuda
