// BatchNormalization (X, scale, bias, mean, variance) -> (Y, running mean?, running variance?) and
// TrainingBatchNormalization (the same operands) -> (Y, mean, variance), X as (samples, channels, places). The
// first has the batch's statistics, and moves the running ones, if its attribute training_mode says so; the second
// has them if the step trains, and gives the statistics that it used. Y may lie where X lies. RunningAverage
// (average, x) -> (average'): momentum * average + (1 - momentum) * x in training, in place.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/channels.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/own_casts.h"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

// Whether the statistics are the batch's.
struct Mode {
  const StepScalars* scalars;  // null: `always` says it
  bool always;
  __device__ bool training() const { return scalars != nullptr ? scalars->training : always; }
};

// Of X against the channel's first element, so that little is lost where the mean is large.
template <typename X>
struct Moments {
  const X* x;
  int64_t places;
  Mode mode;
  __device__ bool Unwanted() const { return !mode.training(); }
  template <int kLanes>
  __device__ void Add(int64_t element, int64_t channel, TwoSums& sums) const {
    const double pivot = Widen(x[channel * places]);
    const Lanes<kLanes, X> lanes = LoadLanes<kLanes>(x + element);
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const double own = static_cast<double>(Widen(lanes.values[k])) - pivot;
      sums.first += own;
      sums.second += own * own;
    }
  }
};

template <typename T, typename X>
struct Statistics {
  const X* x;
  const T *scale, *bias, *mean, *variance;
  T *mean_out, *variance_out;  // null: not wanted
  Compute<T>* coefficients;    // 2 x channels: factor, shift
  double epsilon, momentum;
  bool moves;  // what is given is the running average, not what was used
};

// A thread a channel.
template <typename T, typename X>
__global__ void __launch_bounds__(kThreads)
    FinishStatistics(const Statistics<T, X> at, const AxisView view, const Mode mode, int64_t splits,
                     const TwoSums* partial) {
  const double n = static_cast<double>(view.outer * view.inner);
  for (int64_t c = FirstItem(); c < view.length; c += ItemStride()) {
    const double old_mean = Widen(at.mean[c]), old_variance = Widen(at.variance[c]);
    double mean = old_mean, variance = old_variance;
    if (mode.training()) {
      const TwoSums sums = SumOfSplits(partial, c, splits);
      const double offset = sums.first / n;
      mean = static_cast<double>(Widen(at.x[c * view.inner])) + offset;
      variance = fmax(sums.second / n - offset * offset, 0.0);
    }
    const double keep = at.moves ? at.momentum : 0;
    if (at.mean_out != nullptr)
      at.mean_out[c] = Narrow<T>(static_cast<Compute<T>>(keep * old_mean + (1 - keep) * mean));
    if (at.variance_out != nullptr)
      at.variance_out[c] = Narrow<T>(static_cast<Compute<T>>(keep * old_variance + (1 - keep) * variance));
    const double factor = static_cast<double>(Widen(at.scale[c])) / sqrt(variance + at.epsilon);
    at.coefficients[c] = static_cast<Compute<T>>(factor);
    at.coefficients[view.length + c] =
        static_cast<Compute<T>>(static_cast<double>(Widen(at.bias[c])) - mean * factor);
  }
}

template <typename T, typename X, typename Y, int kLanes>
__global__ void __launch_bounds__(kThreads)
    Normalise(const X* x, const Compute<T>* coefficients, Y* y, const AxisView view) {
  const int64_t rows = view.outer * view.length;
  for (RowWalk walk(FirstThread(), AllThreads(), view.inner / kLanes); walk.row() < rows; walk.Next()) {
    const int64_t channel = walk.row() % view.length, at = walk.row() * view.inner + walk.item() * kLanes;
    const Compute<T> factor = coefficients[channel], shift = coefficients[view.length + channel];
    const Lanes<kLanes, X> lanes = LoadLanes<kLanes>(x + at);
    Lanes<kLanes, Y> results;
#pragma unroll
    for (int k = 0; k < kLanes; ++k) results.values[k] = Narrow<Y>(Widen(lanes.values[k]) * factor + shift);
    StoreLanes<kLanes>(y + at, results);
  }
}

template <bool kHelper>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {5, 5, kHelper ? 3 : 1, 3}));
  const TensorType& x = spec.inputs[0].type;
  AxisView view{x.shape.empty() ? 1 : x.shape[0], 1, 1};
  if (x.shape.size() > 1) {
    ASSIGN_OR_RETURN(view, ViewAlong(x.shape, 1));
  }
  const DType dtype = ComputedType(spec, x.dtype), y_dtype = CastResultType(spec, x.dtype);
  for (int k = 1; k < 5; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {y_dtype, x.shape}));
  const bool always = spec.attributes.Int("training_mode", 0) != 0;
  for (int k = 1; k < 3; ++k) {
    if (HasOutput(spec, k) && !always && !kHelper)
      return Invalid(spec, absl::StrCat("output ", k, " needs training_mode=1"));
    RETURN_IF_ERROR(CheckOutputElements(spec, k, dtype, view.length));
  }
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  const double momentum = spec.attributes.Float("momentum", 0.9f);
  const bool has_mean = HasOutput(spec, 1), has_variance = HasOutput(spec, 2);
  const std::array types{x.dtype, y_dtype};
  return ForOwnCasts(spec, dtype, types, [=](auto tag, auto x_tag, auto y_tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    using X = typename decltype(x_tag)::type;
    using Y = typename decltype(y_tag)::type;
    constexpr int kLanes = kTogether<X, Y>;
    const int64_t sums = SumsBytes(view);
    const int64_t workspace = sums + 2 * view.length * static_cast<int64_t>(sizeof(Compute<T>));
    return MakeKernel(workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (view.outer * view.length * view.inner == 0) return absl::OkStatus();
      const X* const x = Input<X>(arguments, 0);
      Y* const y = Output<Y>(arguments, 0);
      auto* const partial = static_cast<TwoSums*>(arguments.workspace);
      auto* const coefficients =
          reinterpret_cast<Compute<T>*>(static_cast<std::byte*>(arguments.workspace) + sums);
      const Mode mode{kHelper ? arguments.scalars : nullptr, always};
      const bool wide = RowsAreVectors<kLanes>(view) && Aligned(x);
      if (kHelper || always) {
        RETURN_IF_ERROR(LaunchSums<kLanes>(stream, Moments<X>{x, view.inner, mode}, view, wide, partial));
      }
      const Statistics<T, X> at{x,
                                Input<T>(arguments, 1),
                                Input<T>(arguments, 2),
                                Input<T>(arguments, 3),
                                Input<T>(arguments, 4),
                                has_mean ? Output<T>(arguments, 1) : nullptr,
                                has_variance ? Output<T>(arguments, 2) : nullptr,
                                coefficients,
                                epsilon,
                                momentum,
                                !kHelper};
      RETURN_IF_ERROR(Launch(FinishStatistics<T, X>, BlocksFor(view.length), kThreads, stream, at, view, mode,
                             SplitsOf(view), partial));
      const bool wide_rows = wide && Aligned(y);
      const int64_t items = view.outer * view.length * view.inner / (wide_rows ? kLanes : 1);
      return Launch(wide_rows ? Normalise<T, X, Y, kLanes> : Normalise<T, X, Y, 1>, BlocksFor(items),
                    kThreads, stream, x, coefficients, y, view);
    });
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MoveAverage(const T* average, const T* x, T* out, int64_t n, double momentum, const StepScalars* scalars,
                const UpdateGate* gate) {
  if (!scalars->training || *gate != 0) return;
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) {
    const double moved =
        momentum * static_cast<double>(Widen(average[i])) + (1 - momentum) * static_cast<double>(Widen(x[i]));
    out[i] = Narrow<T>(static_cast<Compute<T>>(moved));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRunningAverage(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const double momentum = spec.attributes.Float("momentum", 0.9f);
  ASSIGN_OR_RETURN(const UpdateGate* const gate, context.gate());
  return ForAllFloats(spec, type.dtype, [=, n = type.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      return Launch(MoveAverage<T>, BlocksFor(n), kThreads, stream, Input<T>(arguments, 0),
                    Input<T>(arguments, 1), Output<T>(arguments, 0), n, momentum, arguments.scalars, gate);
    });
  });
}

}  // namespace

void RegisterBatchNormalizationKernels(KernelRegistry& registry) {
  registry.Add("BatchNormalization", "", PrepareForward<false>);
  registry.Add("TrainingBatchNormalization", kPipecDomain, PrepareForward<true>);
  registry.Add("RunningAverage", kPipecDomain, PrepareRunningAverage);
}

}  // namespace pipec::cuda
