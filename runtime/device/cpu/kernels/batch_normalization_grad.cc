// Gradients of BatchNormalization, X as (samples, channels, places), with x^ = (X - mean) / sqrt(variance +
// epsilon) (Ioffe and Szegedy, 2015):
//   BatchNormalizationInputGrad (dY, X, scale, mean, variance) -> (dX): scale / sqrt(variance + epsilon) *
//     (dY - average of dY - x^ * average of dY * x^), the averages over a channel
//   BatchNormalizationWeightGrad (dY, X, mean, variance) -> (dScale, dBias?): sums of dY * x^ and of dY
// and RunningAverage (average, x) -> (average'): momentum * average + (1 - momentum) * x in training, in place.
// Sums are float64, sample by sample: the same for every number of threads.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/channel_sum.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

// Sums over a channel.
struct ChannelSums {
  double dy = 0, dy_x = 0;  // of dY, of dY * (X - mean)
};

template <typename T>
ChannelSums SumChannel(const AxisView& view, const T* dy, const T* x, int64_t channel, double mean) {
  return {ChannelSum(view, channel, [=](int64_t i) { return static_cast<double>(dy[i]); }),
          ChannelSum(view, channel, [=](int64_t i) {
            return static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean);
          })};
}

// dY and X alike, with channels along axis 1 or, of a vector, one channel.
absl::StatusOr<AxisView> ReadView(const KernelSpec& spec) {
  const TensorType& x = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, x));
  if (x.shape.size() < 2) return AxisView{x.shape.empty() ? 1 : x.shape[0], 1, 1};
  return ViewAlong(x.shape, 1);
}

int64_t Grain(const AxisView& view) {
  return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, view.outer * view.inner));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInputGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 5, .max_inputs = 5}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const AxisView view, ReadView(spec));
  for (int k = 2; k < 5; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, type.dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T *const dy = Input<T>(arguments, 0), *const x = Input<T>(arguments, 1);
      T* const dx = Output<T>(arguments, 0);
      ParallelFor(view.length, Grain(view), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const double mean = Input<T>(arguments, 3)[c];
          const double inverse = 1 / std::sqrt(Input<T>(arguments, 4)[c] + epsilon);
          const double factor = Input<T>(arguments, 2)[c] * inverse;
          const ChannelSums sums = SumChannel(view, dy, x, c, mean);
          // dx = a * dy + b * x + shift.
          const double n = static_cast<double>(view.outer * view.inner);
          const double slope = -factor * inverse * inverse * sums.dy_x / n;
          const T a = static_cast<T>(factor), b = static_cast<T>(slope);
          const T shift = static_cast<T>(-factor * sums.dy / n - slope * mean);
          for (int64_t sample = 0; sample < view.outer; ++sample) {
            const int64_t row = (sample * view.length + c) * view.inner;
            const T *const dy_row = dy + row, *const x_row = x + row;
            T* const to = dx + row;
#pragma GCC ivdep
            for (int64_t i = 0; i < view.inner; ++i) to[i] = a * dy_row[i] + (b * x_row[i] + shift);
          }
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 4, .max_inputs = 4, .max_outputs = 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const AxisView view, ReadView(spec));
  for (int k = 2; k < 4; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, type.dtype, view.length));
  for (int k = 0; k < 2; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, type.dtype, view.length));
  const bool has_bias = HasOutput(spec, 1);
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      ParallelFor(view.length, Grain(view), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const double variance = Input<T>(arguments, 3)[c];
          const ChannelSums sums =
              SumChannel(view, Input<T>(arguments, 0), Input<T>(arguments, 1), c, Input<T>(arguments, 2)[c]);
          Output<T>(arguments, 0)[c] = static_cast<T>(sums.dy_x / std::sqrt(variance + epsilon));
          if (has_bias) Output<T>(arguments, 1)[c] = static_cast<T>(sums.dy);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRunningAverage(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const double momentum = spec.attributes.Float("momentum", 0.9f);
  return ForFloats(spec, type.dtype, [=, n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      if (!arguments.scalars->training) return absl::OkStatus();
      const T *const average = Input<T>(arguments, 0), *const x = Input<T>(arguments, 1);
      T* const to = Output<T>(arguments, 0);
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(momentum * average[i] + (1 - momentum) * x[i]);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterBatchNormalizationGradKernels(KernelRegistry& registry) {
  registry.Add("BatchNormalizationInputGrad", kPipecDomain, PrepareInputGrad);
  registry.Add("BatchNormalizationWeightGrad", kPipecDomain, PrepareWeightGrad);
  registry.Add("RunningAverage", kPipecDomain, PrepareRunningAverage);
}

}  // namespace pipec::cpu
