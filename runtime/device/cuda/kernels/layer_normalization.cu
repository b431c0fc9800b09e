// LayerNormalization (X, scale, bias?) -> (Y, mean?, inv_std_dev?) and its gradients. X is seen as rows of
// X.shape[axis:]; mean and inv_std_dev have one element a row, of type float32 or float64's own. Y may lie where X
// lies, dX where dY or X lies, if they are of one type. T: the type of scale, in which, or in float32, is computed.
#include <array>
#include <cmath>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/column_sums.cuh"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/own_casts.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {
namespace {

template <typename T, typename X, typename Y, typename U>
struct Forward {
  const X* x;
  const T *scale, *bias;  // bias null: 0
  Y* y;
  U *means, *inverses;  // null: not wanted
};

// A block a row.
template <typename T, typename X, typename Y, typename U>
__global__ void __launch_bounds__(kThreads)
    NormalizeRows(const Forward<T, X, Y, U> at, int64_t rows, int64_t n, float epsilon) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const X* const x = at.x + row * n;
    C sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += Widen(x[i]);
    const C mean = FoldThreads<SumOf, kThreads>(sum, C(0)) / static_cast<C>(n);
    for (int64_t i = threadIdx.x; i < n; i += kThreads)
      squares += (Widen(x[i]) - mean) * (Widen(x[i]) - mean);
    const C variance = FoldThreads<SumOf, kThreads>(squares, C(0)) / static_cast<C>(n);
    const C inverse = C(1) / sqrt(variance + static_cast<C>(epsilon));
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      C value = (Widen(x[i]) - mean) * inverse * Widen(at.scale[i]);
      if (at.bias != nullptr) value += Widen(at.bias[i]);
      at.y[row * n + i] = Narrow<Y>(value);
    }
    if (threadIdx.x != 0) continue;
    if (at.means != nullptr) at.means[row] = static_cast<U>(mean);
    if (at.inverses != nullptr) at.inverses[row] = static_cast<U>(inverse);
  }
}

template <typename T, typename D, typename X, typename Y, typename U>
struct Backward {
  const D* dy;
  const X* x;
  const T* scale;
  const U *means, *inverses;
  Y* dx;
};

// With xhat = (x - mean) * inv and g = dY * scale: dX = inv * (g - average(g) - xhat * average(g * xhat)). A block
// a row.
template <typename T, typename D, typename X, typename Y, typename U>
__global__ void __launch_bounds__(kThreads)
    InputGradient(const Backward<T, D, X, Y, U> at, int64_t rows, int64_t n) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const D* const dy = at.dy + row * n;
    const X* const x = at.x + row * n;
    const C mean = static_cast<C>(at.means[row]), inverse = static_cast<C>(at.inverses[row]);
    C g = 0, g_xhat = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const C own = Widen(dy[i]) * Widen(at.scale[i]);
      g += own;
      g_xhat += own * ((Widen(x[i]) - mean) * inverse);
    }
    g = FoldThreads<SumOf, kThreads>(g, C(0)) / static_cast<C>(n);
    g_xhat = FoldThreads<SumOf, kThreads>(g_xhat, C(0)) / static_cast<C>(n);
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const C xhat = (Widen(x[i]) - mean) * inverse;
      at.dx[row * n + i] = Narrow<Y>(inverse * (Widen(dy[i]) * Widen(at.scale[i]) - g - xhat * g_xhat));
    }
  }
}

template <typename D, typename X, typename U>
struct WeightTerms {
  const D* dy;
  const X* x;
  const U *means, *inverses;
  int64_t n;
  // Of dY * xhat and of dY.
  template <int kLanes>
  __device__ void Add(int64_t row, int64_t column, Compute<D> (&sums)[2][kLanes]) const {
    using C = Compute<D>;
    const auto dy_lanes = LoadElements<kLanes>(dy + row * n + column);
    const auto x_lanes = LoadElements<kLanes>(x + row * n + column);
    const C mean = static_cast<C>(means[row]), inverse = static_cast<C>(inverses[row]);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const C own = Widen(dy_lanes.values[i]);
      sums[0][i] += own * ((Widen(x_lanes.values[i]) - mean) * inverse);
      sums[1][i] += own;
    }
  }
};

template <typename T>
struct PutWeights {
  T *dscale, *dbias;  // dbias null: not wanted
  __device__ void operator()(int64_t column, const double (&totals)[2]) const {
    dscale[column] = Narrow<T>(static_cast<Compute<T>>(totals[0]));
    if (dbias != nullptr) dbias[column] = Narrow<T>(static_cast<Compute<T>>(totals[1]));
  }
};

// make(tag of the statistics' type, tag of T, tags of `types`).
template <size_t n, typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForCasts(const KernelSpec& spec, DType dtype, DType statistics,
                                                 const std::array<DType, n>& types, const Make& make) {
  if (dtype == DType::kFloat64 && statistics == DType::kFloat64) {
    return WithoutCasts<n>([&](auto... tags) { return make(TypeTag<double>(), tags...); }, TypeTag<double>());
  }
  if (statistics != DType::kFloat32) return NoKernelFor(spec, dtype);
  return ForOwnCasts(spec, dtype, types, [&](auto... tags) { return make(TypeTag<float>(), tags...); });
}

dim3 RowBlocks(int64_t rows) { return dim3(static_cast<unsigned>(std::min<int64_t>(rows, 1 << 20))); }

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 1, 3}));
  const TensorType& x_type = spec.inputs[0].type;
  const DType dtype = ComputedType(spec, x_type.dtype), y_dtype = CastResultType(spec, x_type.dtype);
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(x_type.shape, spec.attributes.Int("axis", -1)));
  for (int k = 1; k < 3; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {y_dtype, x_type.shape}));
  const bool has_bias = Has(spec, 2), has_mean = HasOutput(spec, 1), has_inverse = HasOutput(spec, 2);
  const DType statistics = has_mean      ? spec.outputs[1].type.dtype
                           : has_inverse ? spec.outputs[2].type.dtype
                                         : DType::kFloat32;
  for (int k = 1; k < 3; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, statistics, view.outer));
  const float epsilon = spec.attributes.Float("epsilon", 1e-5f);
  const std::array types{x_type.dtype, y_dtype};
  return ForCasts(spec, dtype, statistics, types, [=](auto u_tag, auto t_tag, auto x_tag, auto y_tag) {
    using U = typename decltype(u_tag)::type;
    using T = typename decltype(t_tag)::type;
    using X = typename decltype(x_tag)::type;
    using Y = typename decltype(y_tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (view.outer * view.length == 0) return absl::OkStatus();
      const Forward<T, X, Y, U> at{Input<X>(arguments, 0),
                                   Input<T>(arguments, 1),
                                   has_bias ? Input<T>(arguments, 2) : nullptr,
                                   Output<Y>(arguments, 0),
                                   has_mean ? Output<U>(arguments, 1) : nullptr,
                                   has_inverse ? Output<U>(arguments, 2) : nullptr};
      return Launch(NormalizeRows<T, X, Y, U>, RowBlocks(view.outer), kThreads, stream, at, view.outer,
                    view.length, epsilon);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInputGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {5, 5}));
  const TensorType &dy_type = spec.inputs[0].type, &x_type = spec.inputs[1].type;
  const DType dtype = ComputedType(spec, dy_type.dtype), dx_dtype = CastResultType(spec, dy_type.dtype);
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(x_type.shape, spec.attributes.Int("axis", -1)));
  RETURN_IF_ERROR(CheckInput(spec, 0, {dy_type.dtype, x_type.shape}));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, dtype, view.length));
  const DType statistics = spec.inputs[3].type.dtype;
  for (int k = 3; k < 5; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, statistics, view.outer));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dx_dtype, x_type.shape}));
  const std::array types{dy_type.dtype, x_type.dtype, dx_dtype};
  return ForCasts(
      spec, dtype, statistics, types, [=](auto u_tag, auto t_tag, auto d_tag, auto x_tag, auto y_tag) {
        using U = typename decltype(u_tag)::type;
        using T = typename decltype(t_tag)::type;
        using D = typename decltype(d_tag)::type;
        using X = typename decltype(x_tag)::type;
        using Y = typename decltype(y_tag)::type;
        return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          if (view.outer * view.length == 0) return absl::OkStatus();
          const Backward<T, D, X, Y, U> at{Input<D>(arguments, 0), Input<X>(arguments, 1),
                                           Input<T>(arguments, 2), Input<U>(arguments, 3),
                                           Input<U>(arguments, 4), Output<Y>(arguments, 0)};
          return Launch(InputGradient<T, D, X, Y, U>, RowBlocks(view.outer), kThreads, stream, at, view.outer,
                        view.length);
        });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {4, 4, 1, 2}));
  const TensorType &dy_type = spec.inputs[0].type, &x_type = spec.inputs[1].type;
  const DType dtype = ComputedType(spec, dy_type.dtype);
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(x_type.shape, spec.attributes.Int("axis", -1)));
  RETURN_IF_ERROR(CheckInput(spec, 0, {dy_type.dtype, x_type.shape}));
  const DType statistics = spec.inputs[2].type.dtype;
  for (int k = 2; k < 4; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, statistics, view.outer));
  for (int k = 0; k < 2; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, dtype, view.length));
  const bool has_bias = HasOutput(spec, 1);
  const std::array types{dy_type.dtype, x_type.dtype};
  return ForCasts(spec, dtype, statistics, types, [=](auto u_tag, auto t_tag, auto d_tag, auto x_tag) {
    using U = typename decltype(u_tag)::type;
    using T = typename decltype(t_tag)::type;
    using D = typename decltype(d_tag)::type;
    using X = typename decltype(x_tag)::type;
    using Wider = std::conditional_t<(sizeof(D) > sizeof(X)), D, X>;  // says how many are read at once
    const int64_t workspace = ColumnSumsBytes<2>(view.outer, view.length);
    return MakeKernel(workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (view.length == 0) return absl::OkStatus();
      const D* const dy = Input<D>(arguments, 0);
      const X* const x = Input<X>(arguments, 1);
      const WeightTerms<D, X, U> terms{dy, x, Input<U>(arguments, 2), Input<U>(arguments, 3), view.length};
      const PutWeights<T> put{Output<T>(arguments, 0), has_bias ? Output<T>(arguments, 1) : nullptr};
      return LaunchColumnSums<Wider, 2>(stream, terms, put, view.outer, view.length,
                                        Aligned(dy) && Aligned(x), arguments.workspace);
    });
  });
}

}  // namespace

void RegisterLayerNormalizationKernels(KernelRegistry& registry) {
  registry.Add("LayerNormalization", "", PrepareForward);
  registry.Add("LayerNormalization", kPipecDomain, PrepareForward);
  registry.Add("LayerNormalizationInputGrad", kPipecDomain, PrepareInputGrad);
  registry.Add("LayerNormalizationWeightGrad", kPipecDomain, PrepareWeightGrad);
}

}  // namespace pipec::cuda
