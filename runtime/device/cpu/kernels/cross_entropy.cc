// SoftmaxCrossEntropy (logits, labels, weights?) -> (loss?, weight?, log_sum_exp?)
// SoftmaxCrossEntropyGrad (dLoss, logits, labels, log_sum_exp, weights?) -> (dLogits)
// Per row, with label l, weights w (1 if absent) and smoothing e:
//   loss = w[l] (1 - e) (lse - x[l]) + e / C * sum over c of w[c] (lse - x[c]),  lse = log of the sum of
//   exp(x[c])
// as PyTorch's cross_entropy has it. Ignored and padding rows have loss 0 and gradient 0. Sums go in float64,
// row by row. dLogits may lie where logits lie.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/labels.h"

namespace pipec::cpu {
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

int64_t RowGrain(int64_t classes) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, classes)); }

// log of the sum of exp(x[c]) is largest + log_sum; apart, they keep the digits of the difference to a logit.
template <typename T>
struct Normaliser {
  T largest = 0, log_sum = 0;
};

// kStride 1: the classes of a row lie together and its loops become vector code; 0: `stride` elements apart.
template <typename T, int kStride>
struct Row {
  static PIPEC_INLINE Normaliser<T> LogSumExp(const T* x, int64_t classes, int64_t stride) {
    if (kStride == 1) stride = 1;
    const T largest = Fold(
        classes, -std::numeric_limits<T>::infinity(), [](T a, T b) { return a < b ? b : a; },
        [=](int64_t c) { return x[c * stride]; });
    return {largest, Log(Sum<T>(classes, [=](int64_t c) { return Exp(x[c * stride] - largest); }))};
  }

  // Sum over c of w[c] (lse - x[c]).
  static PIPEC_INLINE T Smoothed(const T* x, const T* weights, Normaliser<T> lse, int64_t classes,
                                 int64_t stride) {
    if (kStride == 1) stride = 1;
    const auto loss = [=](int64_t c) { return lse.largest - x[c * stride] + lse.log_sum; };
    if (weights == nullptr) return Sum<T>(classes, loss);
    return Sum<T>(classes, [=](int64_t c) { return weights[c] * loss(c); });
  }

  // dx[c] = p[c] * from_sum - w[c] * from_each, the label's own term left to the caller. No weights: w = 1.
  static PIPEC_INLINE void Gradient(const T* x, const T* weights, T lse, T from_sum, T from_each, T* dx,
                                    int64_t classes, int64_t stride) {
    if (kStride == 1) stride = 1;
    if (weights == nullptr || from_each == T{0}) {
#pragma GCC ivdep
      for (int64_t c = 0; c < classes; ++c) dx[c * stride] = Exp(x[c * stride] - lse) * from_sum - from_each;
    } else {
#pragma GCC ivdep
      for (int64_t c = 0; c < classes; ++c) {
        dx[c * stride] = Exp(x[c * stride] - lse) * from_sum - weights[c] * from_each;
      }
    }
  }
};

template <typename T, int kStride>
std::unique_ptr<Kernel> ForwardKernel(const KernelSpec& spec, const LabelledRows& rows,
                                      const Options& options) {
  const bool has_weights = Has(spec, 2);
  const bool has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1), has_lse = HasOutput(spec, 2);
  // Loss and weight of each row, until they are added up.
  const int64_t workspace = 2 * rows.rows() * static_cast<int64_t>(sizeof(double));
  return MakeKernel(workspace, [=](const KernelArguments& arguments) -> absl::Status {
    const T* const x = Input<T>(arguments, 0);
    const void* const labels = arguments.inputs[1];
    const T* const weights = has_weights ? Input<T>(arguments, 2) : nullptr;
    T* const loss = has_loss ? Output<T>(arguments, 0) : nullptr;
    T* const log_sum_exp = has_lse ? Output<T>(arguments, 2) : nullptr;
    const StepScalars& scalars = *arguments.scalars;
    RETURN_IF_ERROR(rows.Check(labels, scalars));
    double* const row_loss = static_cast<double*>(arguments.workspace);
    double* const row_weight = row_loss + rows.rows();
    const T keep = static_cast<T>(1 - options.smoothing);
    const T spread = static_cast<T>(options.smoothing / static_cast<double>(rows.classes()));
    ParallelFor(
        rows.rows(), RowGrain(rows.classes()), [&, stride = rows.view().inner](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t label = rows.Label(labels, row);
            T value = 0, weight = 0;
            Normaliser<T> lse;
            if (!rows.IsPadding(row, scalars) && !rows.Ignored(label)) {
              const T* const logits = x + rows.At(row);
              lse = Row<T, kStride>::LogSumExp(logits, rows.classes(), stride);
              weight = weights == nullptr ? T{1} : weights[label];
              value = weight * keep * (lse.largest - logits[label * stride] + lse.log_sum);
              if (spread != T{0}) {
                value += spread * Row<T, kStride>::Smoothed(logits, weights, lse, rows.classes(), stride);
              }
            }
            row_loss[row] = value;
            row_weight[row] = weight;
            if (log_sum_exp != nullptr) log_sum_exp[row] = lse.largest + lse.log_sum;
            if (loss != nullptr && !options.sum) loss[row] = value;
          }
        });
    double total = 0, total_weight = 0;
    for (int64_t row = 0; row < rows.rows(); ++row) total += row_loss[row], total_weight += row_weight[row];
    if (loss != nullptr && options.sum) *loss = static_cast<T>(total);
    if (has_weight) *Output<T>(arguments, 1) = static_cast<T>(total_weight);
    return absl::OkStatus();
  });
}

template <typename T, int kStride>
std::unique_ptr<Kernel> GradKernel(const KernelSpec& spec, const LabelledRows& rows, const Options& options) {
  return MakeKernel(0, [=, has_weights = Has(spec, 4)](const KernelArguments& arguments) -> absl::Status {
    const T* const dloss = Input<T>(arguments, 0);
    const T* const x = Input<T>(arguments, 1);
    const void* const labels = arguments.inputs[2];
    const T* const log_sum_exp = Input<T>(arguments, 3);
    const T* const weights = has_weights ? Input<T>(arguments, 4) : nullptr;
    T* const dx = Output<T>(arguments, 0);
    const StepScalars& scalars = *arguments.scalars;
    const int64_t classes = rows.classes();
    RETURN_IF_ERROR(rows.Check(labels, scalars));
    const T all_weights =
        weights == nullptr ? static_cast<T>(classes) : Sum<T>(classes, [=](int64_t c) { return weights[c]; });
    const T keep = static_cast<T>(1 - options.smoothing);
    const T spread = static_cast<T>(options.smoothing / static_cast<double>(classes));
    ParallelFor(rows.rows(), RowGrain(classes), [&, stride = rows.view().inner](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* const gradient = dx + rows.At(row);
        const int64_t label = rows.Label(labels, row);
        if (rows.IsPadding(row, scalars) || rows.Ignored(label)) {
          for (int64_t c = 0; c < classes; ++c) gradient[c * stride] = 0;
          continue;
        }
        const T d = options.sum ? *dloss : dloss[row];
        const T own = d * keep * (weights == nullptr ? T{1} : weights[label]);
        Row<T, kStride>::Gradient(x + rows.At(row), weights, log_sum_exp[row], own + d * spread * all_weights,
                                  d * spread, gradient, classes, stride);
        gradient[label * stride] -= own;
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 0, 3}));
  const TensorType &logits = spec.inputs[0].type, &labels = spec.inputs[1].type;
  ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, logits.shape, labels, -1));
  ASSIGN_OR_RETURN(const Options options, ReadOptions(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, logits.dtype, rows.classes()));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, logits.dtype, options.sum ? 1 : rows.rows()));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, logits.dtype, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 2, logits.dtype, rows.rows()));
  return ForFloats(spec, logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    return rows.view().inner == 1 ? ForwardKernel<T, 1>(spec, rows, options)
                                  : ForwardKernel<T, 0>(spec, rows, options);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {4, 5}));
  const TensorType &logits = spec.inputs[1].type, &labels = spec.inputs[2].type;
  ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, logits.shape, labels, -1));
  ASSIGN_OR_RETURN(const Options options, ReadOptions(spec));
  RETURN_IF_ERROR(CheckInputElements(spec, 0, logits.dtype, options.sum ? 1 : rows.rows()));
  RETURN_IF_ERROR(CheckInputElements(spec, 3, logits.dtype, rows.rows()));
  RETURN_IF_ERROR(CheckInputElements(spec, 4, logits.dtype, rows.classes()));
  RETURN_IF_ERROR(CheckOutput(spec, 0, logits));
  return ForFloats(spec, logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    return rows.view().inner == 1 ? GradKernel<T, 1>(spec, rows, options)
                                  : GradKernel<T, 0>(spec, rows, options);
  });
}

}  // namespace

void RegisterCrossEntropyKernels(KernelRegistry& registry) {
  registry.Add("SoftmaxCrossEntropy", kPipecDomain, PrepareForward);
  registry.Add("SoftmaxCrossEntropyGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cpu
