// Gradients of BatchNormalization, X as (samples, channels, places), with x^ = (X - mean) / sqrt(variance +
// epsilon) (Ioffe and Szegedy, 2015):
//   BatchNormalizationInputGrad (dY, X, scale, mean, variance) -> (dX): scale / sqrt(variance + epsilon) *
//     (dY - average of dY - x^ * average of dY * x^), the averages over a channel
//   BatchNormalizationWeightGrad (dY, X, mean, variance) -> (dScale, dBias?): sums of dY * x^ and of dY
#include <array>
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/channels.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/own_casts.h"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

// Of dY and of dY * (X - mean).
template <typename T, typename D, typename X>
struct GradientTerms {
  const D* dy;
  const X* x;
  const T* mean;
  __device__ bool Unwanted() const { return false; }
  template <int kLanes>
  __device__ void Add(int64_t element, int64_t channel, TwoSums& sums) const {
    const double center = Widen(mean[channel]);
    const Lanes<kLanes, D> dy_lanes = LoadLanes<kLanes>(dy + element);
    const Lanes<kLanes, X> x_lanes = LoadLanes<kLanes>(x + element);
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const double own = Widen(dy_lanes.values[k]);
      sums.first += own;
      sums.second += own * (static_cast<double>(Widen(x_lanes.values[k])) - center);
    }
  }
};

// dX = a * dY + (b * X + shift), of each channel. `share`: one element's of an average.
template <typename C>
struct Line {
  C a, b, shift;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FinishLines(const T* scale, const T* mean, const T* variance, int64_t channels, double share,
                double epsilon, int64_t splits, const TwoSums* partial, Line<Compute<T>>* lines) {
  using C = Compute<T>;
  for (int64_t c = FirstItem(); c < channels; c += ItemStride()) {
    const TwoSums sums = SumOfSplits(partial, c, splits);
    const double inverse = 1 / sqrt(static_cast<double>(Widen(variance[c])) + epsilon);
    const double factor = static_cast<double>(Widen(scale[c])) * inverse;
    const double slope = -factor * inverse * inverse * sums.second * share;
    const double shift = -factor * sums.first * share - slope * static_cast<double>(Widen(mean[c]));
    lines[c] = {static_cast<C>(factor), static_cast<C>(slope), static_cast<C>(shift)};
  }
}

template <typename T, typename D, typename X, typename Y, int kLanes>
__global__ void __launch_bounds__(kThreads)
    InputGradient(const D* dy, const X* x, const Line<Compute<T>>* lines, Y* dx, const AxisView view) {
  const int64_t rows = view.outer * view.length;
  for (RowWalk walk(FirstThread(), AllThreads(), view.inner / kLanes); walk.row() < rows; walk.Next()) {
    const int64_t at = walk.row() * view.inner + walk.item() * kLanes;
    const Line<Compute<T>> line = lines[walk.row() % view.length];
    const Lanes<kLanes, D> dy_lanes = LoadLanes<kLanes>(dy + at);
    const Lanes<kLanes, X> x_lanes = LoadLanes<kLanes>(x + at);
    Lanes<kLanes, Y> results;
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      results.values[k] =
          Narrow<Y>(line.a * Widen(dy_lanes.values[k]) + (line.b * Widen(x_lanes.values[k]) + line.shift));
    }
    StoreLanes<kLanes>(dx + at, results);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    WeightGradient(const T* variance, const AxisView view, double epsilon, int64_t splits,
                   const TwoSums* partial, T* dscale, T* dbias) {
  for (int64_t c = FirstItem(); c < view.length; c += ItemStride()) {
    const TwoSums sums = SumOfSplits(partial, c, splits);
    const double deviation = sqrt(static_cast<double>(Widen(variance[c])) + epsilon);
    dscale[c] = Narrow<T>(static_cast<Compute<T>>(sums.second / deviation));
    if (dbias != nullptr) dbias[c] = Narrow<T>(static_cast<Compute<T>>(sums.first));
  }
}

// dY and X of one shape, with channels along axis 1 or, of a vector, one channel.
absl::StatusOr<AxisView> ReadView(const KernelSpec& spec) {
  const TensorType& x = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInput(spec, 0, {spec.inputs[0].type.dtype, x.shape}));
  if (x.shape.size() < 2) return AxisView{x.shape.empty() ? 1 : x.shape[0], 1, 1};
  return ViewAlong(x.shape, 1);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInputGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {5, 5}));
  const DType dy_dtype = spec.inputs[0].type.dtype, dtype = ComputedType(spec, dy_dtype),
              dx_dtype = CastResultType(spec, dy_dtype);
  const TensorType& x_type = spec.inputs[1].type;
  ASSIGN_OR_RETURN(const AxisView view, ReadView(spec));
  for (int k = 2; k < 5; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dx_dtype, x_type.shape}));
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  const std::array types{dy_dtype, x_type.dtype, dx_dtype};
  return ForOwnCasts(
      spec, dtype, types, [=](auto tag, auto d_tag, auto x_tag, auto y_tag) -> std::unique_ptr<Kernel> {
        using T = typename decltype(tag)::type;
        using D = typename decltype(d_tag)::type;
        using X = typename decltype(x_tag)::type;
        using Y = typename decltype(y_tag)::type;
        constexpr int kLanes = kTogether<D, X, Y>;
        using LineOf = Line<Compute<T>>;
        const int64_t sums = SumsBytes(view),
                      workspace = sums + view.length * static_cast<int64_t>(sizeof(LineOf));
        return MakeKernel(
            workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
              if (view.outer * view.length * view.inner == 0) return absl::OkStatus();
              const D* const dy = Input<D>(arguments, 0);
              const X* const x = Input<X>(arguments, 1);
              const T* const mean = Input<T>(arguments, 3);
              Y* const dx = Output<Y>(arguments, 0);
              auto* const partial = static_cast<TwoSums*>(arguments.workspace);
              auto* const lines =
                  reinterpret_cast<LineOf*>(static_cast<std::byte*>(arguments.workspace) + sums);
              const bool wide = RowsAreVectors<kLanes>(view) && Aligned(x) && Aligned(dy);
              const GradientTerms<T, D, X> terms{dy, x, mean};
              RETURN_IF_ERROR(LaunchSums<kLanes>(stream, terms, view, wide, partial));
              RETURN_IF_ERROR(Launch(FinishLines<T>, BlocksFor(view.length), kThreads, stream,
                                     Input<T>(arguments, 2), mean, Input<T>(arguments, 4), view.length,
                                     1.0 / static_cast<double>(view.outer * view.inner), epsilon,
                                     SplitsOf(view), partial, lines));
              const bool wide_rows = wide && Aligned(dx);
              const int64_t items = view.outer * view.length * view.inner / (wide_rows ? kLanes : 1);
              return Launch(wide_rows ? InputGradient<T, D, X, Y, kLanes> : InputGradient<T, D, X, Y, 1>,
                            BlocksFor(items), kThreads, stream, dy, x, lines, dx, view);
            });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {4, 4, 1, 2}));
  const DType dy_dtype = spec.inputs[0].type.dtype, dtype = ComputedType(spec, dy_dtype);
  ASSIGN_OR_RETURN(const AxisView view, ReadView(spec));
  for (int k = 2; k < 4; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, dtype, view.length));
  for (int k = 0; k < 2; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, dtype, view.length));
  const bool has_bias = HasOutput(spec, 1);
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  const std::array types{dy_dtype, spec.inputs[1].type.dtype};
  return ForOwnCasts(spec, dtype, types, [=](auto tag, auto d_tag, auto x_tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    using D = typename decltype(d_tag)::type;
    using X = typename decltype(x_tag)::type;
    constexpr int kLanes = kTogether<D, X>;
    return MakeKernel(SumsBytes(view),
                      [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                        if (view.length == 0) return absl::OkStatus();
                        const D* const dy = Input<D>(arguments, 0);
                        const X* const x = Input<X>(arguments, 1);
                        if (view.outer * view.inner == 0) {
                          const int64_t bytes = view.length * static_cast<int64_t>(sizeof(T));
                          if (has_bias)
                            RETURN_IF_CUDA_ERROR(cudaMemsetAsync(Output<T>(arguments, 1), 0, bytes, stream));
                          RETURN_IF_CUDA_ERROR(cudaMemsetAsync(Output<T>(arguments, 0), 0, bytes, stream));
                          return absl::OkStatus();
                        }
                        auto* const partial = static_cast<TwoSums*>(arguments.workspace);
                        const bool wide = RowsAreVectors<kLanes>(view) && Aligned(x) && Aligned(dy);
                        const GradientTerms<T, D, X> terms{dy, x, Input<T>(arguments, 2)};
                        RETURN_IF_ERROR(LaunchSums<kLanes>(stream, terms, view, wide, partial));
                        return Launch(WeightGradient<T>, BlocksFor(view.length), kThreads, stream,
                                      Input<T>(arguments, 3), view, epsilon, SplitsOf(view), partial,
                                      Output<T>(arguments, 0), has_bias ? Output<T>(arguments, 1) : nullptr);
                      });
  });
}

}  // namespace

void RegisterBatchNormalizationGradKernels(KernelRegistry& registry) {
  registry.Add("BatchNormalizationInputGrad", kPipecDomain, PrepareInputGrad);
  registry.Add("BatchNormalizationWeightGrad", kPipecDomain, PrepareWeightGrad);
}

}  // namespace pipec::cuda
