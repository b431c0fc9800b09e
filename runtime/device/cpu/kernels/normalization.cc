// InstanceNormalization (X, scale, bias) -> (Y), LpNormalization (X) -> (Y) and
// LRN (X) -> (Y): each over rows or channels of one sample. Y may not lie where
// X lies.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

int64_t GrainOf(int64_t elements) {
  return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(elements, 1));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInstanceNormalization(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type;
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 2 or more"));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, 1));
  for (int k = 1; k < 3; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, x.dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const float epsilon = spec.attributes.Float("epsilon", 1e-5f);
  return ForFloats(spec, x.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      ParallelFor(
          view.outer * view.length, GrainOf(view.inner), [&, n = view.inner](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              const T *const x = Input<T>(arguments, 0) + row * n;
              T *const y = Output<T>(arguments, 0) + row * n;
              const T mean = Sum<T>(n, [x](int64_t i) { return x[i]; }) / static_cast<T>(n);
              const T variance =
                  Sum<T>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / static_cast<T>(n);
              const T factor =
                  Input<T>(arguments, 1)[row % view.length] / std::sqrt(variance + static_cast<T>(epsilon));
              const T bias = Input<T>(arguments, 2)[row % view.length];
              for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor + bias;
            }
          });
      return absl::OkStatus();
    });
  });
}

// Divided by the norm along the axis; a row whose norm is 0 stays 0.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLpNormalization(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType &x = spec.inputs[0].type;
  absl::StatusOr<AxisView> along = ViewAlong(x.shape, spec.attributes.Int("axis", -1));
  if (!along.ok()) return Invalid(spec, along.status().message());
  const int64_t p = spec.attributes.Int("p", 2);
  if (p != 1 && p != 2) return Invalid(spec, absl::StrCat("attribute p is ", p, ", wanted 1 or 2"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return ForFloats(spec, x.dtype, [=, view = *along](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      ParallelFor(view.outer * view.inner, GrainOf(view.length), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row / view.inner * view.length * view.inner + row % view.inner,
                        step = view.inner;
          const T *const x = Input<T>(arguments, 0) + first;
          T *const y = Output<T>(arguments, 0) + first;
          T norm = Sum<T>(view.length, [=](int64_t i) {
            return p == 1 ? std::fabs(x[i * step]) : x[i * step] * x[i * step];
          });
          if (p == 2) norm = std::sqrt(norm);
          for (int64_t i = 0; i < view.length; ++i) y[i * step] = norm == 0 ? T{0} : x[i * step] / norm;
        }
      });
      return absl::OkStatus();
    });
  });
}

// y = x / (bias + alpha / size * sum of squares of `size` channels
// around)^beta.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLrn(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType &x = spec.inputs[0].type;
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 2 or more"));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, 1));
  const int64_t size = spec.attributes.Int("size", 0);
  if (size < 1) return Invalid(spec, absl::StrCat("attribute size is ", size, ", wanted 1 or more"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const float alpha = spec.attributes.Float("alpha", 1e-4f), beta = spec.attributes.Float("beta", 0.75f),
              bias = spec.attributes.Float("bias", 1);
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  return ForFloats(spec, x.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      const T *const x = Input<T>(arguments, 0);
      T *const y = Output<T>(arguments, 0);
      const int64_t n = view.inner, channels = view.length;
      ParallelFor(
          view.outer * channels, GrainOf(n * std::min(size, channels)), [=](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              const int64_t channel = row % channels;
              const int64_t first = row - std::min(channel, before),
                            last = row + std::min(channels - 1 - channel, after);
              T *const to = y + row * n;
              std::fill_n(to, n, T{0});
              for (int64_t other = first; other <= last; ++other) {
                const T *const from = x + other * n;
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) to[i] += from[i] * from[i];
              }
              const T *const from = x + row * n;
              const T factor = static_cast<T>(alpha) / static_cast<T>(size);
              for (int64_t i = 0; i < n; ++i) {
                to[i] = from[i] / std::pow(static_cast<T>(bias) + factor * to[i], static_cast<T>(beta));
              }
            }
          });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterNormalizationKernels(KernelRegistry &registry) {
  registry.Add("InstanceNormalization", "", PrepareInstanceNormalization);
  registry.Add("LRN", "", PrepareLrn);
  registry.Add("LpNormalization", "", PrepareLpNormalization);
}

}  // namespace pipec::cpu
