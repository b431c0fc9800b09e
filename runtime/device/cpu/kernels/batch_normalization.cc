// BatchNormalization (X, scale, bias, mean, variance) -> (Y, running mean?,
// running variance?). X is (N, C, ...). In training mode the statistics are the
// batch's own, over everything but the channel, and the running ones move
// towards them: momentum * old + (1 - momentum) * the batch's.
// TrainingBatchNormalization (the same operands) -> (Y, mean, variance): the
// batch's statistics in training, the running ones in evaluation.
#include <algorithm>
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

// A channel's average of term(element of X), added in float64.
template <typename T, typename Term>
double ChannelAverage(const AxisView &view, const T *x, int64_t channel, const Term &term) {
  const double sum = ChannelSum(view, channel, [&](int64_t i) { return term(static_cast<double>(x[i])); });
  return sum / static_cast<double>(view.outer * view.inner);
}

// y = x * factor + shift, one factor and shift a channel, in `coefficients` (2
// x channels).
template <typename T>
void Normalise(const AxisView &view, const T *x, const T *coefficients, T *y) {
  const int64_t n = view.inner, channels = view.length;
  ParallelFor(view.outer * channels, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(n, 1)),
              [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const T factor = coefficients[row % channels],
                          shift = coefficients[channels + row % channels];
                  const T *const from = x + row * n;
                  T *const to = y + row * n;
#pragma GCC ivdep  // Y may lie where X lies
                  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * factor + shift;
                }
              });
}

template <typename T>
std::unique_ptr<Kernel> Make(const KernelSpec &spec, const AxisView &view, bool helper) {
  const double epsilon = spec.attributes.Float("epsilon", 1e-5f);
  const double momentum = spec.attributes.Float("momentum", 0.9f);
  const bool always = spec.attributes.Int("training_mode", 0) != 0;
  const bool has_mean = HasOutput(spec, 1), has_variance = HasOutput(spec, 2);
  const int64_t workspace = 2 * view.length * static_cast<int64_t>(sizeof(T));
  return MakeKernel(workspace, [=](const KernelArguments &arguments) {
    const bool training = helper ? arguments.scalars->training : always;
    const T *const x = Input<T>(arguments, 0);
    T *const coefficients = static_cast<T *>(arguments.workspace);
    ParallelFor(view.length, training ? 1 : kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double mean = Input<T>(arguments, 3)[c], variance = Input<T>(arguments, 4)[c];
        if (training) {
          const double old_mean = mean, old_variance = variance;
          const double own_mean = ChannelAverage(view, x, c, [](double e) { return e; });
          mean = own_mean;
          variance =
              ChannelAverage(view, x, c, [own_mean](double e) { return (e - own_mean) * (e - own_mean); });
          if (has_mean && !helper) {
            Output<T>(arguments, 1)[c] = static_cast<T>(momentum * old_mean + (1 - momentum) * mean);
          }
          if (has_variance && !helper) {
            Output<T>(arguments, 2)[c] = static_cast<T>(momentum * old_variance + (1 - momentum) * variance);
          }
        }
        if (helper) {
          Output<T>(arguments, 1)[c] = static_cast<T>(mean);
          Output<T>(arguments, 2)[c] = static_cast<T>(variance);
        }
        const double factor = static_cast<double>(Input<T>(arguments, 1)[c]) / std::sqrt(variance + epsilon);
        coefficients[c] = static_cast<T>(factor);
        coefficients[view.length + c] =
            static_cast<T>(static_cast<double>(Input<T>(arguments, 2)[c]) - mean * factor);
      }
    });
    Normalise(view, x, coefficients, Output<T>(arguments, 0));
    return absl::OkStatus();
  });
}

template <bool kHelper>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(
      spec, {.min_inputs = 5, .max_inputs = 5, .min_outputs = kHelper ? 3 : 1, .max_outputs = 3}));
  const TensorType &x = spec.inputs[0].type;
  AxisView view{x.shape.empty() ? 1 : x.shape[0], 1, 1};
  if (x.shape.size() > 1) {
    ASSIGN_OR_RETURN(view, ViewAlong(x.shape, 1));
  }
  for (int k = 1; k < 5; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, x.dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const bool training = spec.attributes.Int("training_mode", 0) != 0;
  for (int k = 1; k < 3; ++k) {
    if (HasOutput(spec, k) && !training && !kHelper)
      return Invalid(spec, absl::StrCat("output ", k, " needs training_mode=1"));
    RETURN_IF_ERROR(CheckOutputElements(spec, k, x.dtype, view.length));
  }
  return ForFloats(spec, x.dtype, [&](auto zero) { return Make<decltype(zero)>(spec, view, kHelper); });
}

}  // namespace

void RegisterBatchNormalizationKernels(KernelRegistry &registry) {
  registry.Add("BatchNormalization", "", Prepare<false>);
  registry.Add("TrainingBatchNormalization", kPipecDomain, Prepare<true>);
}

}  // namespace pipec::cpu
