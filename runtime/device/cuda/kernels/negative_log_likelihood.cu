// NegativeLogLikelihood (log_prob, labels, weights?) -> (loss?, weight?): loss = -w[l] log_prob[l] a row, summed or
// not. NegativeLogLikelihoodGrad (dLoss, labels, weights?) -> (dLogProb): -w[l] dLoss at the label, 0 elsewhere.
// Ignored and padding rows have loss 0 and gradient 0. A thread a row.
#include <string>

#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/labels.cuh"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

absl::StatusOr<bool> IsSum(const KernelSpec& spec) {
  const std::string reduction = spec.attributes.String("reduction", "sum");
  if (reduction == "sum" || reduction == "none") return reduction == "sum";
  return Invalid(spec, absl::StrCat("reduction is '", reduction, "', wanted 'sum' or 'none'"));
}

// One block, so that the sums are in one order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    SumLabelled(const T* log_prob, const void* label_data, const T* weights, T* row_loss, T* loss, T* weight,
                const Labels labels, const StepScalars* scalars) {
  using C = Compute<T>;
  double total = 0, total_weight = 0;
  for (int64_t row = threadIdx.x; row < labels.rows; row += kThreads) {
    const int64_t label = labels.CountedByThread(label_data, row, scalars);
    C value = 0;
    if (label >= 0) {
      const C own = weights == nullptr ? C(1) : Widen(weights[label]);
      value = -own * Widen(log_prob[labels.At(row) + label * labels.inner]);
      total_weight += own;
    }
    total += value;
    if (row_loss != nullptr) row_loss[row] = Narrow<T>(value);
  }
  total = FoldThreads<SumOf, kThreads>(total, 0.0);
  total_weight = FoldThreads<SumOf, kThreads>(total_weight, 0.0);
  if (threadIdx.x != 0) return;
  if (loss != nullptr) *loss = Narrow<T>(static_cast<C>(total));
  if (weight != nullptr) *weight = Narrow<T>(static_cast<C>(total_weight));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 0, 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const Labels labels, Labels::Of(spec, type, spec.inputs[1].type, context));
  ASSIGN_OR_RETURN(const bool is_sum, IsSum(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, labels.classes));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, type.dtype, is_sum ? 1 : labels.rows));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, type.dtype, 1));
  const bool has_weights = Has(spec, 2), has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1);
  return ForAllFloats(spec, type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      T* const loss = has_loss ? Output<T>(arguments, 0) : nullptr;
      return Launch(SumLabelled<T>, 1, kThreads, stream, Input<T>(arguments, 0), arguments.inputs[1],
                    has_weights ? Input<T>(arguments, 2) : nullptr, is_sum ? nullptr : loss,
                    is_sum ? loss : nullptr, has_weight ? Output<T>(arguments, 1) : nullptr, labels,
                    arguments.scalars);
    });
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    GradientAtLabels(const T* dloss, const void* label_data, const T* weights, T* dx, bool is_sum,
                     const Labels labels, const StepScalars* scalars) {
  using C = Compute<T>;
  for (int64_t row = FirstItem(); row < labels.rows; row += ItemStride()) {
    const int64_t label = labels.CountedByThread(label_data, row, scalars);
    if (label < 0) continue;
    const C own = weights == nullptr ? C(1) : Widen(weights[label]);
    dx[labels.At(row) + label * labels.inner] = Narrow<T>(-own * Widen(dloss[is_sum ? 0 : row]));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  const TensorType& type = spec.outputs[0].type;
  ASSIGN_OR_RETURN(const Labels labels, Labels::Of(spec, type, spec.inputs[1].type, context));
  ASSIGN_OR_RETURN(const bool is_sum, IsSum(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 0, type.dtype, is_sum ? 1 : labels.rows));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, labels.classes));
  return ForAllFloats(spec, type.dtype, [=, has_weights = Has(spec, 2), bytes = type.bytes()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (bytes == 0) return absl::OkStatus();
      RETURN_IF_CUDA_ERROR(cudaMemsetAsync(arguments.outputs[0], 0, bytes, stream));
      return Launch(GradientAtLabels<T>, BlocksFor(labels.rows), kThreads, stream, Input<T>(arguments, 0),
                    arguments.inputs[1], has_weights ? Input<T>(arguments, 2) : nullptr,
                    Output<T>(arguments, 0), is_sum, labels, arguments.scalars);
    });
  });
}

}  // namespace

void RegisterNegativeLogLikelihoodKernels(KernelRegistry& registry) {
  registry.Add("NegativeLogLikelihood", kPipecDomain, PrepareForward);
  registry.Add("NegativeLogLikelihoodGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cuda
