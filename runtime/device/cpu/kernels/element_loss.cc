// Losses that compare element by element, summed in float64 over the samples that are not padding:
//   MeanSquaredError, BinaryCrossEntropyWithLogits (output, labels) -> (loss?, weight?), weight: the number
//   of terms
//   ...Grad (dLoss, output, labels) -> (dOutput), 0 for padding; dOutput may lie where output or labels lie
#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/blocked_sum.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/samples.h"

namespace pipec::cpu {
namespace {

struct SquaredError {
  template <typename T>
  static PIPEC_INLINE double Loss(T x, T z) {
    const double difference = static_cast<double>(x) - static_cast<double>(z);
    return difference * difference;
  }
  template <typename T>
  static PIPEC_INLINE T Gradient(T d, T x, T z) {
    return T{2} * d * (x - z);
  }
};

struct BinaryCrossEntropy {
  template <typename T>
  static PIPEC_INLINE double Loss(T x, T z) {
    return (x > T{0} ? x : T{0}) - x * z + Log(T{1} + Exp(-std::fabs(x)));
  }
  template <typename T>
  static PIPEC_INLINE T Gradient(T d, T x, T z) {
    return d * (Sigmoid(x) - z);
  }
};

template <typename Loss>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 0, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, type.dtype, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, type.dtype, 1));
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  const bool has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(BlockedSumBytes(type.elements()), [=](const KernelArguments& arguments) {
      const T *x = Input<T>(arguments, 0), *z = Input<T>(arguments, 1);
      const StepScalars& scalars = *arguments.scalars;
      const int64_t n = samples.Valid(scalars);
      if (has_loss && (samples.valid_first() || n == samples.elements())) {
        *Output<T>(arguments, 0) = static_cast<T>(
            BlockedSum(n, arguments.workspace, [=](int64_t i) { return Loss::Loss(x[i], z[i]); }));
      } else if (has_loss) {
        *Output<T>(arguments, 0) =
            static_cast<T>(BlockedSum(samples.elements(), arguments.workspace, [=](int64_t i) {
              return samples.IsPadding(i, scalars) ? 0.0 : Loss::Loss(x[i], z[i]);
            }));
      }
      if (has_weight) *Output<T>(arguments, 1) = static_cast<T>(n);
      return absl::OkStatus();
    });
  });
}

template <typename Loss>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  const TensorType& type = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInputElements(spec, 0, type.dtype, 1));
  RETURN_IF_ERROR(CheckInput(spec, 2, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T d = *Input<T>(arguments, 0);
      const T *x = Input<T>(arguments, 1), *z = Input<T>(arguments, 2);
      T* dx = Output<T>(arguments, 0);
      const StepScalars& scalars = *arguments.scalars;
      const int64_t valid = samples.Valid(scalars), elements = samples.elements();
      const int64_t n = samples.valid_first() ? valid : elements;
      ParallelFor(n, kSumBlock, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) dx[i] = Loss::Gradient(d, x[i], z[i]);
      });
      for (int64_t i = valid < elements ? 0 : elements; i < elements; ++i) {
        if (samples.IsPadding(i, scalars)) dx[i] = T{0};
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterElementLossKernels(KernelRegistry& registry) {
  registry.Add("MeanSquaredError", kPipecDomain, PrepareForward<SquaredError>);
  registry.Add("MeanSquaredErrorGrad", kPipecDomain, PrepareGrad<SquaredError>);
  registry.Add("BinaryCrossEntropyWithLogits", kPipecDomain, PrepareForward<BinaryCrossEntropy>);
  registry.Add("BinaryCrossEntropyWithLogitsGrad", kPipecDomain, PrepareGrad<BinaryCrossEntropy>);
}

}  // namespace pipec::cpu
