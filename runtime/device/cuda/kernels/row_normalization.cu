// InstanceNormalization (X, scale, bias) -> (Y), LpNormalization (X) -> (Y): a block a row; LRN (X) -> (Y): a
// thread an element. Of float32 and float64. Y may not lie where X lies.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {
namespace {

dim3 BlocksForRows(int64_t rows) {
  return dim3(static_cast<unsigned>(std::clamp<int64_t>(rows, 1, 1 << 16)));
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    NormalizeInstances(const T* x, const T* scale, const T* bias, T* y, const AxisView view, T epsilon) {
  const int64_t n = view.inner;
  for (int64_t row = blockIdx.x; row < view.outer * view.length; row += gridDim.x) {
    const T* const from = x + row * n;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += from[i];
    const T mean = static_cast<T>(FoldThreads<SumOf, kThreads>(sum, 0.0) / static_cast<double>(n));
    double squares = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const T centred = from[i] - mean;
      squares += static_cast<double>(centred * centred);
    }
    const T variance = static_cast<T>(FoldThreads<SumOf, kThreads>(squares, 0.0) / static_cast<double>(n));
    const T factor = scale[row % view.length] / sqrt(variance + epsilon), shift = bias[row % view.length];
    for (int64_t i = threadIdx.x; i < n; i += kThreads) y[row * n + i] = (from[i] - mean) * factor + shift;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInstance(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  const TensorType& x = spec.inputs[0].type;
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 2 or more"));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, 1));
  for (int k = 1; k < 3; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, x.dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const float epsilon = spec.attributes.Float("epsilon", 1e-5f);
  return ForWideFloats(spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t rows = view.outer * view.length;
      if (rows * view.inner == 0) return absl::OkStatus();
      return Launch(NormalizeInstances<T>, BlocksForRows(rows), kThreads, stream, Input<T>(arguments, 0),
                    Input<T>(arguments, 1), Input<T>(arguments, 2), Output<T>(arguments, 0), view,
                    static_cast<T>(epsilon));
    });
  });
}

// A row whose norm is 0 stays 0.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    DivideByNorm(const T* x, T* y, const AxisView view, int64_t p) {
  for (int64_t row = blockIdx.x; row < view.outer * view.inner; row += gridDim.x) {
    const int64_t first = row / view.inner * view.length * view.inner + row % view.inner;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < view.length; i += kThreads) {
      const T value = x[first + i * view.inner];
      sum += static_cast<double>(p == 1 ? fabs(value) : value * value);
    }
    sum = FoldThreads<SumOf, kThreads>(sum, 0.0);
    const T norm = static_cast<T>(p == 1 ? sum : sqrt(sum));
    for (int64_t i = threadIdx.x; i < view.length; i += kThreads) {
      const int64_t at = first + i * view.inner;
      y[at] = norm == T(0) ? T(0) : x[at] / norm;
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareLp(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  absl::StatusOr<AxisView> along = ViewAlong(x.shape, spec.attributes.Int("axis", -1));
  if (!along.ok()) return Invalid(spec, along.status().message());
  const int64_t p = spec.attributes.Int("p", 2);
  if (p != 1 && p != 2) return Invalid(spec, absl::StrCat("attribute p is ", p, ", wanted 1 or 2"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return ForWideFloats(spec, x.dtype, [=, view = *along](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t rows = view.outer * view.inner;
      if (rows * view.length == 0) return absl::OkStatus();
      return Launch(DivideByNorm<T>, BlocksForRows(rows), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), view, p);
    });
  });
}

// y = x / (bias + alpha / size * sum of squares of `size` channels around)^beta.
struct Local {
  int64_t before, after;
  float alpha, beta, bias;
  int64_t size;
};
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    NormalizeLocally(const T* x, T* y, const AxisView view, const Local local) {
  const int64_t all = view.outer * view.length * view.inner;
  for (int64_t i = FirstItem(); i < all; i += ItemStride()) {
    const int64_t row = i / view.inner, channel = row % view.length;
    const int64_t first = -min(channel, local.before), last = min(view.length - 1 - channel, local.after);
    T sum = 0;
    for (int64_t other = first; other <= last; ++other) {
      const T value = x[i + other * view.inner];
      sum += value * value;
    }
    y[i] = x[i] /
           pow(static_cast<T>(local.bias) + static_cast<T>(local.alpha) / static_cast<T>(local.size) * sum,
               static_cast<T>(local.beta));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareLrn(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 2 or more"));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, 1));
  const int64_t size = spec.attributes.Int("size", 0);
  if (size < 1) return Invalid(spec, absl::StrCat("attribute size is ", size, ", wanted 1 or more"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const int64_t before = (size - 1) / 2;
  const Local local{before,
                    size - 1 - before,
                    spec.attributes.Float("alpha", 1e-4f),
                    spec.attributes.Float("beta", 0.75f),
                    spec.attributes.Float("bias", 1),
                    size};
  return ForWideFloats(spec, x.dtype, [=, all = x.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (all == 0) return absl::OkStatus();
      return Launch(NormalizeLocally<T>, BlocksFor(all), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), view, local);
    });
  });
}

}  // namespace

void RegisterRowNormalizationKernels(KernelRegistry& registry) {
  registry.Add("InstanceNormalization", "", PrepareInstance);
  registry.Add("LRN", "", PrepareLrn);
  registry.Add("LpNormalization", "", PrepareLp);
}

}  // namespace pipec::cuda
