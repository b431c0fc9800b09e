// NegativeLogLikelihood (log_prob, labels, weights?) -> (loss?, weight?): loss = -w[l] log_prob[l] a row,
// summed or not. NegativeLogLikelihoodGrad (dLoss, labels, weights?) -> (dLogProb): -w[l] dLoss at the label,
// 0 elsewhere. Ignored and padding rows have loss 0 and gradient 0.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/labels.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<bool> IsSum(const KernelSpec& spec) {
  const std::string reduction = spec.attributes.String("reduction", "sum");
  if (reduction == "sum" || reduction == "none") return reduction == "sum";
  return Invalid(spec, absl::StrCat("reduction is '", reduction, "', wanted 'sum' or 'none'"));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 0, 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, type.shape, spec.inputs[1].type, -1));
  ASSIGN_OR_RETURN(const bool is_sum, IsSum(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, rows.classes()));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, type.dtype, is_sum ? 1 : rows.rows()));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, type.dtype, 1));
  const bool has_weights = Has(spec, 2), has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) -> absl::Status {
      const T* const log_prob = Input<T>(arguments, 0);
      const void* const labels = arguments.inputs[1];
      const T* const weights = has_weights ? Input<T>(arguments, 2) : nullptr;
      T* const loss = has_loss ? Output<T>(arguments, 0) : nullptr;
      const StepScalars& scalars = *arguments.scalars;
      RETURN_IF_ERROR(rows.Check(labels, scalars));
      double total = 0, total_weight = 0;
      for (int64_t row = 0; row < rows.rows(); ++row) {
        const int64_t label = rows.Label(labels, row);
        T value = 0;
        if (!rows.IsPadding(row, scalars) && !rows.Ignored(label)) {
          const T weight = weights == nullptr ? T{1} : weights[label];
          value = -weight * log_prob[rows.At(row) + label * rows.view().inner];
          total_weight += weight;
        }
        total += value;
        if (loss != nullptr && !is_sum) loss[row] = value;
      }
      if (loss != nullptr && is_sum) *loss = static_cast<T>(total);
      if (has_weight) *Output<T>(arguments, 1) = static_cast<T>(total_weight);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  const TensorType& type = spec.outputs[0].type;
  ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, type.shape, spec.inputs[1].type, -1));
  ASSIGN_OR_RETURN(const bool is_sum, IsSum(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 0, type.dtype, is_sum ? 1 : rows.rows()));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, rows.classes()));
  return ForFloats(spec, type.dtype, [=, has_weights = Has(spec, 2), elements = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) -> absl::Status {
      const T* const dloss = Input<T>(arguments, 0);
      const void* const labels = arguments.inputs[1];
      const T* const weights = has_weights ? Input<T>(arguments, 2) : nullptr;
      T* const dx = Output<T>(arguments, 0);
      const StepScalars& scalars = *arguments.scalars;
      RETURN_IF_ERROR(rows.Check(labels, scalars));
      ParallelFor(elements, 65536,
                  [=](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, T{0}); });
      for (int64_t row = 0; row < rows.rows(); ++row) {
        const int64_t label = rows.Label(labels, row);
        if (rows.IsPadding(row, scalars) || rows.Ignored(label)) continue;
        const T weight = weights == nullptr ? T{1} : weights[label];
        dx[rows.At(row) + label * rows.view().inner] = -weight * (is_sum ? *dloss : dloss[row]);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterNegativeLogLikelihoodKernels(KernelRegistry& registry) {
  registry.Add("NegativeLogLikelihood", kPipecDomain, PrepareForward);
  registry.Add("NegativeLogLikelihoodGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cpu
