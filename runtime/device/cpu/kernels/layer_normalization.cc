// LayerNormalization (X, scale, bias?) -> (Y, mean?, inv_std_dev?) and its gradients. X is seen as rows of
// X.shape[axis:]; mean and inv_std_dev have one element a row, of type float32 or X's. Y may lie where X
// lies, dX where dY or X lies.
#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/onednn_element.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

int64_t RowGrain(int64_t length) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, length)); }

// make(zero of X's type, zero of the statistics' type).
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForTypes(const KernelSpec& spec, DType x, DType statistics,
                                                 const Make& make) {
  if (x == DType::kFloat32 && statistics == DType::kFloat32) return make(float{0}, float{0});
  if (x == DType::kFloat64 && statistics == DType::kFloat32) return make(double{0}, float{0});
  if (x == DType::kFloat64 && statistics == DType::kFloat64) return make(double{0}, double{0});
  return NoKernelFor(spec, x);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3, 1, 3}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(type.shape, spec.attributes.Int("axis", -1)));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, type.dtype, view.length));
  const bool has_bias = Has(spec, 2);
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, view.length));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const bool has_mean = HasOutput(spec, 1), has_inverse = HasOutput(spec, 2);
  const DType statistics = has_mean      ? spec.outputs[1].type.dtype
                           : has_inverse ? spec.outputs[2].type.dtype
                                         : type.dtype;
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, statistics, view.outer));
  RETURN_IF_ERROR(CheckOutputElements(spec, 2, statistics, view.outer));
  const float epsilon = spec.attributes.Float("epsilon", 1e-5f);
  if (type.dtype == DType::kFloat32 && statistics == DType::kFloat32 && has_mean == has_inverse &&
      type.elements() > 0) {
    return MakeOneDnnLayerNormalization(view.outer, view.length, epsilon, has_bias, has_mean);
  }
  return ForTypes(spec, type.dtype, statistics, [=](auto x_zero, auto statistics_zero) {
    using T = decltype(x_zero);
    using U = decltype(statistics_zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T* const scale = Input<T>(arguments, 1);
      const T* const bias = has_bias ? Input<T>(arguments, 2) : nullptr;
      U* const means = has_mean ? Output<U>(arguments, 1) : nullptr;
      U* const inverses = has_inverse ? Output<U>(arguments, 2) : nullptr;
      ParallelFor(view.outer, RowGrain(view.length), [&, n = view.length](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* x = Input<T>(arguments, 0) + row * n;
          T* y = Output<T>(arguments, 0) + row * n;
          const T mean = Sum<T>(n, [=](int64_t i) { return x[i]; }) / static_cast<T>(n);
          const T variance =
              Sum<T>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / static_cast<T>(n);
          const T inverse = T{1} / std::sqrt(variance + static_cast<T>(epsilon));
          if (bias != nullptr) {
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * scale[i];
          }
          if (means != nullptr) means[row] = static_cast<U>(mean);
          if (inverses != nullptr) inverses[row] = static_cast<U>(inverse);
        }
      });
      return absl::OkStatus();
    });
  });
}

// With xhat = (x - mean) * inv and g = dY * scale: dX = inv * (g - average(g) - xhat * average(g * xhat)).
absl::StatusOr<std::unique_ptr<Kernel>> PrepareInputGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {5, 5}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(type.shape, spec.attributes.Int("axis", -1)));
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, type.dtype, view.length));
  const DType statistics = spec.inputs[3].type.dtype;
  RETURN_IF_ERROR(CheckInputElements(spec, 3, statistics, view.outer));
  RETURN_IF_ERROR(CheckInputElements(spec, 4, statistics, view.outer));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  return ForTypes(spec, type.dtype, statistics, [=](auto x_zero, auto statistics_zero) {
    using T = decltype(x_zero);
    using U = decltype(statistics_zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T* const scale = Input<T>(arguments, 2);
      ParallelFor(view.outer, RowGrain(view.length), [&, n = view.length](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* dy = Input<T>(arguments, 0) + row * n;
          const T* x = Input<T>(arguments, 1) + row * n;
          T* dx = Output<T>(arguments, 0) + row * n;
          const T mean = static_cast<T>(Input<U>(arguments, 3)[row]);
          const T inverse = static_cast<T>(Input<U>(arguments, 4)[row]);
          const T g = Sum<T>(n, [=](int64_t i) { return dy[i] * scale[i]; }) / static_cast<T>(n);
          const T g_xhat =
              Sum<T>(n, [=](int64_t i) { return dy[i] * scale[i] * ((x[i] - mean) * inverse); }) /
              static_cast<T>(n);
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) {
            dx[i] = inverse * (dy[i] * scale[i] - g - (x[i] - mean) * inverse * g_xhat);
          }
        }
      });
      return absl::OkStatus();
    });
  });
}

// Each column is summed from the first row to the last.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {4, 4, 1, 2}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const AxisView view, ViewFrom(type.shape, spec.attributes.Int("axis", -1)));
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  const DType statistics = spec.inputs[2].type.dtype;
  RETURN_IF_ERROR(CheckInputElements(spec, 2, statistics, view.outer));
  RETURN_IF_ERROR(CheckInputElements(spec, 3, statistics, view.outer));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, type.dtype, view.length));
  const bool has_bias = HasOutput(spec, 1);
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, type.dtype, view.length));
  return ForTypes(spec, type.dtype, statistics, [=](auto x_zero, auto statistics_zero) {
    using T = decltype(x_zero);
    using U = decltype(statistics_zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T* const dy = Input<T>(arguments, 0);
      const T* const x = Input<T>(arguments, 1);
      const U* const means = Input<U>(arguments, 2);
      const U* const inverses = Input<U>(arguments, 3);
      ParallelFor(view.length, 64, [&, n = view.length](int64_t begin, int64_t end) {
        T* const dscale = Output<T>(arguments, 0);
        std::fill(dscale + begin, dscale + end, T{0});
        for (int64_t row = 0; row < view.outer; ++row) {
          const T mean = static_cast<T>(means[row]), inverse = static_cast<T>(inverses[row]);
          const T *dy_row = dy + row * n, *x_row = x + row * n;
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) dscale[i] += dy_row[i] * ((x_row[i] - mean) * inverse);
        }
        if (!has_bias) return;
        T* const dbias = Output<T>(arguments, 1);
        std::fill(dbias + begin, dbias + end, T{0});
        for (int64_t row = 0; row < view.outer; ++row) {
          const T* dy_row = dy + row * n;
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) dbias[i] += dy_row[i];
        }
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterLayerNormalizationKernels(KernelRegistry& registry) {
  registry.Add("LayerNormalization", "", PrepareForward);
  registry.Add("LayerNormalization", kPipecDomain, PrepareForward);
  registry.Add("LayerNormalizationInputGrad", kPipecDomain, PrepareInputGrad);
  registry.Add("LayerNormalizationWeightGrad", kPipecDomain, PrepareWeightGrad);
}

}  // namespace pipec::cpu
