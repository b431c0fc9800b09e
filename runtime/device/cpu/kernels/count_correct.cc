// CountCorrect (logits, labels) -> (correct, predictions): rows whose largest logit (the first of equals) is
// the label's, and rows that count: neither ignored nor padding.
#include <algorithm>
#include <atomic>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/labels.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 2, 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, type.shape, spec.inputs[1].type, -1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kInt64, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, DType::kInt64, 1));
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) -> absl::Status {
      const T* const logits = Input<T>(arguments, 0);
      const void* const labels = arguments.inputs[1];
      const StepScalars& scalars = *arguments.scalars;
      RETURN_IF_ERROR(rows.Check(labels, scalars));
      std::atomic<int64_t> correct = 0, predictions = 0;
      const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, rows.classes()));
      ParallelFor(rows.rows(), grain, [&, stride = rows.view().inner](int64_t begin, int64_t end) {
        int64_t range_correct = 0, range_predictions = 0;
        for (int64_t row = begin; row < end; ++row) {
          if (rows.IsPadding(row, scalars)) continue;
          const int64_t label = rows.Label(labels, row);
          if (rows.Ignored(label)) continue;
          const T* const x = logits + rows.At(row);
          int64_t best = 0;
          for (int64_t c = 1; c < rows.classes(); ++c) {
            if (x[c * stride] > x[best * stride]) best = c;
          }
          ++range_predictions;
          range_correct += best == label;
        }
        correct += range_correct;
        predictions += range_predictions;
      });
      *Output<int64_t>(arguments, 0) = correct;
      *Output<int64_t>(arguments, 1) = predictions;
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterCountCorrectKernels(KernelRegistry& registry) {
  registry.Add("CountCorrect", kPipecDomain, Prepare);
}

}  // namespace pipec::cpu
