// SoftmaxCrossEntropy (logits, labels, weights?) -> (loss?, weight?, log_sum_exp?)
// SoftmaxCrossEntropyGrad (dLoss, logits, labels, log_sum_exp, weights?) -> (dLogits)
// Per row, with label l, weights w (1 if absent) and smoothing e:
//   loss = w[l] (1 - e) (lse - x[l]) + e / C * sum over c of w[c] (lse - x[c]),  lse = log of the sum of exp(x[c])
// Ignored and padding rows have loss 0 and gradient 0. Rows are added in float64, in a fixed order. A block a row.
#include <array>
#include <cmath>
#include <string>

#include "runtime/device/cuda/kernels/labels.cuh"
#include "runtime/device/cuda/kernels/own_casts.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

struct Options {
  bool sum;  // reduction "sum"; else "none"
  double smoothing;
};

absl::StatusOr<Options> ReadOptions(const KernelSpec& spec) {
  const std::string reduction = spec.attributes.String("reduction", "sum");
  if (reduction != "sum" && reduction != "none") {
    return Invalid(spec, absl::StrCat("reduction is '", reduction, "', wanted 'sum' or 'none'"));
  }
  return Options{reduction == "sum", spec.attributes.Float("label_smoothing", 0)};
}

template <typename T, typename X>
struct Forward {
  const X* x;
  const void* labels;
  const T* weights;       // null: 1
  T *loss, *log_sum_exp;  // of each row; null: not wanted
  double *row_loss, *row_weight;
};

template <typename T, typename X, int kWidth>
__global__ void __launch_bounds__(kWidth)
    RowLoss(const Forward<T, X> at, const Labels labels, const Options options, const StepScalars* scalars) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < labels.rows; row += gridDim.x) {
    const int64_t label = labels.Counted(at.labels, row, scalars);
    C value = 0, weight = 0, lse = 0;
    if (label >= 0) {
      const X* const x = at.x + labels.At(row);
      C largest = static_cast<C>(-INFINITY);
      for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth) {
        largest = MaxOf::Combine(largest, Widen(x[c * labels.inner]));
      }
      largest = FoldThreads<MaxOf, kWidth>(largest, static_cast<C>(-INFINITY));
      C sum = 0;
      for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth)
        sum += exp(Widen(x[c * labels.inner]) - largest);
      // largest and log_sum apart keep the digits of the difference to a logit.
      const C log_sum = log(FoldThreads<SumOf, kWidth>(sum, C(0)));
      weight = at.weights == nullptr ? C(1) : Widen(at.weights[label]);
      value = weight * static_cast<C>(1 - options.smoothing) *
              (largest - Widen(x[label * labels.inner]) + log_sum);
      if (options.smoothing != 0) {
        C smoothed = 0;
        for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth) {
          const C loss = largest - Widen(x[c * labels.inner]) + log_sum;
          smoothed += at.weights == nullptr ? loss : Widen(at.weights[c]) * loss;
        }
        value += static_cast<C>(options.smoothing / static_cast<double>(labels.classes)) *
                 FoldThreads<SumOf, kWidth>(smoothed, C(0));
      }
      lse = largest + log_sum;
    }
    if (threadIdx.x != 0) continue;
    at.row_loss[row] = value;
    at.row_weight[row] = weight;
    if (at.log_sum_exp != nullptr) at.log_sum_exp[row] = Narrow<T>(lse);
    if (at.loss != nullptr && !options.sum) at.loss[row] = Narrow<T>(value);
  }
}

// One block.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    SumRows(const double* row_loss, const double* row_weight, int64_t rows, T* loss, T* weight) {
  double total = 0, total_weight = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    total += row_loss[row];
    total_weight += row_weight[row];
  }
  total = FoldThreads<SumOf, kThreads>(total, 0.0);
  total_weight = FoldThreads<SumOf, kThreads>(total_weight, 0.0);
  if (threadIdx.x != 0) return;
  if (loss != nullptr) *loss = Narrow<T>(static_cast<Compute<T>>(total));
  if (weight != nullptr) *weight = Narrow<T>(static_cast<Compute<T>>(total_weight));
}

template <typename T, typename X, typename Y>
struct Gradient {
  const T* dloss;
  const X* x;
  const void* labels;
  const T *log_sum_exp, *weights;  // weights null: 1
  Y* dx;
};

template <typename T, typename X, typename Y, int kWidth>
__global__ void __launch_bounds__(kWidth, 1) RowGradient(const Gradient<T, X, Y> at, const Labels labels,
                                                         const Options options, const StepScalars* scalars) {
  using C = Compute<T>;
  for (int64_t row = blockIdx.x; row < labels.rows; row += gridDim.x) {
    const int64_t label = labels.Counted(at.labels, row, scalars), first = labels.At(row);
    if (label < 0) {
      for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth)
        at.dx[first + c * labels.inner] = Narrow<Y>(C(0));
      continue;
    }
    C all_weights = static_cast<C>(labels.classes);
    const C spread = static_cast<C>(options.smoothing / static_cast<double>(labels.classes));
    if (at.weights != nullptr && spread != C(0)) {
      all_weights = 0;
      for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth) all_weights += Widen(at.weights[c]);
      all_weights = FoldThreads<SumOf, kWidth>(all_weights, C(0));
    }
    const C d = Widen(options.sum ? *at.dloss : at.dloss[row]), lse = Widen(at.log_sum_exp[row]);
    const C own =
        d * static_cast<C>(1 - options.smoothing) * (at.weights == nullptr ? C(1) : Widen(at.weights[label]));
    const C from_sum = own + d * spread * all_weights, from_each = d * spread;
    for (int64_t c = threadIdx.x; c < labels.classes; c += kWidth) {
      const int64_t place = first + c * labels.inner;
      C gradient = exp(Widen(at.x[place]) - lse) * from_sum;
      gradient -= at.weights == nullptr ? from_each : Widen(at.weights[c]) * from_each;
      if (c == label) gradient -= own;
      at.dx[place] = Narrow<Y>(gradient);
    }
  }
}

dim3 RowBlocks(int64_t rows) { return dim3(static_cast<unsigned>(std::min<int64_t>(rows, 1 << 20))); }

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 0, 3}));
  const TensorType& logits = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const Labels labels, Labels::Of(spec, logits, spec.inputs[1].type, context));
  ASSIGN_OR_RETURN(const Options options, ReadOptions(spec));
  const DType dtype = ComputedType(spec, logits.dtype);
  RETURN_IF_ERROR(CheckInputElements(spec, 2, dtype, labels.classes));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, dtype, options.sum ? 1 : labels.rows));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, dtype, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 2, dtype, labels.rows));
  const bool has_weights = Has(spec, 2), has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1),
             has_lse = HasOutput(spec, 2);
  return ForOwnCasts(spec, dtype, std::array{logits.dtype}, [=](auto tag, auto x_tag) {
    using T = typename decltype(tag)::type;
    using X = typename decltype(x_tag)::type;
    // Loss and weight of each row, until they are added up.
    const int64_t workspace = 2 * labels.rows * static_cast<int64_t>(sizeof(double));
    return MakeKernel(workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      auto* const row_loss = static_cast<double*>(arguments.workspace);
      T* const loss = has_loss ? Output<T>(arguments, 0) : nullptr;
      const Forward<T, X> at{Input<X>(arguments, 0),
                             arguments.inputs[1],
                             has_weights ? Input<T>(arguments, 2) : nullptr,
                             loss,
                             has_lse ? Output<T>(arguments, 2) : nullptr,
                             row_loss,
                             row_loss + labels.rows};
      if (labels.rows > 0) {
        RETURN_IF_ERROR(labels.classes <= kWarpRow
                            ? Launch(RowLoss<T, X, 32>, RowBlocks(labels.rows), 32, stream, at, labels,
                                     options, arguments.scalars)
                            : Launch(RowLoss<T, X, kThreads>, RowBlocks(labels.rows), kThreads, stream, at,
                                     labels, options, arguments.scalars));
      }
      return Launch(SumRows<T>, 1, kThreads, stream, at.row_loss, at.row_weight, labels.rows,
                    options.sum ? loss : nullptr, has_weight ? Output<T>(arguments, 1) : nullptr);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {4, 5}));
  const TensorType& logits = spec.inputs[1].type;
  ASSIGN_OR_RETURN(const Labels labels, Labels::Of(spec, logits, spec.inputs[2].type, context));
  ASSIGN_OR_RETURN(const Options options, ReadOptions(spec));
  const DType dtype = ComputedType(spec, logits.dtype), result = CastResultType(spec, logits.dtype);
  RETURN_IF_ERROR(CheckInputElements(spec, 0, dtype, options.sum ? 1 : labels.rows));
  RETURN_IF_ERROR(CheckInputElements(spec, 3, dtype, labels.rows));
  RETURN_IF_ERROR(CheckInputElements(spec, 4, dtype, labels.classes));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {result, logits.shape}));
  const std::array types{logits.dtype, result};
  return ForOwnCasts(spec, dtype, types, [=, has_weights = Has(spec, 4)](auto tag, auto x_tag, auto y_tag) {
    using T = typename decltype(tag)::type;
    using X = typename decltype(x_tag)::type;
    using Y = typename decltype(y_tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (labels.rows == 0) return absl::OkStatus();
      const Gradient<T, X, Y> at{Input<T>(arguments, 0),
                                 Input<X>(arguments, 1),
                                 arguments.inputs[2],
                                 Input<T>(arguments, 3),
                                 has_weights ? Input<T>(arguments, 4) : nullptr,
                                 Output<Y>(arguments, 0)};
      if (labels.classes <= kWarpRow) {
        return Launch(RowGradient<T, X, Y, 32>, RowBlocks(labels.rows), 32, stream, at, labels, options,
                      arguments.scalars);
      }
      return Launch(RowGradient<T, X, Y, kThreads>, RowBlocks(labels.rows), kThreads, stream, at, labels,
                    options, arguments.scalars);
    });
  });
}

}  // namespace

void RegisterCrossEntropyKernels(KernelRegistry& registry) {
  registry.Add("SoftmaxCrossEntropy", kPipecDomain, PrepareForward);
  registry.Add("SoftmaxCrossEntropyGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cuda
