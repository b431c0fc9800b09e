// CountCorrect (logits, labels) -> (correct, predictions): rows whose largest logit (the first of equals) is the
// label's, and rows that count: neither ignored nor padding. A block a row.
#include <cmath>

#include "runtime/device/cuda/kernels/labels.cuh"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// verdicts[row]: -1 does not count, 0 wrong, 1 right.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kWidth)
    JudgeRows(const T* logits, const void* label_data, const Labels labels, const StepScalars* scalars,
              int* verdicts) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < labels.rows; row += gridDim.x) {
    const int64_t label = labels.Counted(label_data, row, scalars);
    int verdict = -1;
    if (label >= 0) {
      const T* const x = logits + labels.At(row);
      C largest = static_cast<C>(-INFINITY);
      for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth) {
        largest = MaxOf::Combine(largest, Widen(x[c * labels.inner]));
      }
      largest = FoldThreads<MaxOf, kWidth>(largest, static_cast<C>(-INFINITY));
      int64_t best = labels.classes;
      for (int64_t c = threadIdx.x; c < labels.classes && best == labels.classes; c += kWidth) {
        if (Widen(x[c * labels.inner]) == largest) best = c;
      }
      best = FoldThreads<MinOf, kWidth>(best, labels.classes);
      verdict = best == label ? 1 : 0;
    }
    if (threadIdx.x == 0) verdicts[row] = verdict;
  }
}

// One block.
__global__ void __launch_bounds__(kThreads)
    CountVerdicts(const int* verdicts, int64_t rows, int64_t* correct, int64_t* predictions) {
  int64_t right = 0, counted = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    right += verdicts[row] > 0 ? 1 : 0;
    counted += verdicts[row] >= 0 ? 1 : 0;
  }
  right = FoldThreads<SumOf, kThreads>(right, int64_t{0});
  counted = FoldThreads<SumOf, kThreads>(counted, int64_t{0});
  if (threadIdx.x != 0) return;
  *correct = right;
  *predictions = counted;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 2, 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const Labels labels, Labels::Of(spec, type, spec.inputs[1].type, context));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kInt64, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, DType::kInt64, 1));
  return ForAllFloats(spec, type.dtype, [labels](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t workspace = labels.rows * static_cast<int64_t>(sizeof(int));
    return MakeKernel(
        workspace, [labels](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          auto* const verdicts = static_cast<int*>(arguments.workspace);
          const T* const logits = Input<T>(arguments, 0);
          const void* const label_data = arguments.inputs[1];
          if (labels.rows > 0) {
            const dim3 blocks(static_cast<unsigned>(std::min<int64_t>(labels.rows, 1 << 20)));
            RETURN_IF_ERROR(labels.classes <= kWarpRow
                                ? Launch(JudgeRows<T, 32>, blocks, 32, stream, logits, label_data, labels,
                                         arguments.scalars, verdicts)
                                : Launch(JudgeRows<T, kThreads>, blocks, kThreads, stream, logits, label_data,
                                         labels, arguments.scalars, verdicts));
          }
          return Launch(CountVerdicts, 1, kThreads, stream, verdicts, labels.rows,
                        Output<int64_t>(arguments, 0), Output<int64_t>(arguments, 1));
        });
  });
}

}  // namespace

void RegisterCountCorrectKernels(KernelRegistry& registry) {
  registry.Add("CountCorrect", kPipecDomain, Prepare);
}

}  // namespace pipec::cuda
