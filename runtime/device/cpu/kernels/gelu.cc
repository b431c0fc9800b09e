// Gelu (X) -> (Y) and GeluGrad (dY, X) -> (dX), exact or with ONNX's tanh approximation. The result may lie
// where an operand lies.
#include <numbers>
#include <string>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kGrain = 4096;

// gelu(x) = x * cdf(x); the derivative is cdf(x) + x * pdf(x).
struct Exact {
  template <typename T>
  static PIPEC_INLINE T Cdf(T x) {
    return T{0.5} * (T{1} + Erf(x * static_cast<T>(std::numbers::sqrt2 / 2)));
  }
  template <typename T>
  static PIPEC_INLINE T Value(T x) {
    return x * Cdf(x);
  }
  template <typename T>
  static PIPEC_INLINE T Slope(T x) {
    constexpr T kPeak = static_cast<T>(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
    return Cdf(x) + x * (kPeak * Exp(T{-0.5} * x * x));
  }
};

// gelu(x) = x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct TanhApproximation {
  template <typename T>
  static constexpr T kScale = static_cast<T>(std::numbers::sqrt2* std::numbers::inv_sqrtpi);
  template <typename T>
  static constexpr T kCubic = static_cast<T>(0.044715);

  template <typename T>
  static PIPEC_INLINE T TanhOf(T x) {
    return Tanh(kScale<T> * (x + kCubic<T> * x * x * x));
  }
  template <typename T>
  static PIPEC_INLINE T Value(T x) {
    return T{0.5} * x * (T{1} + TanhOf(x));
  }
  template <typename T>
  static PIPEC_INLINE T Slope(T x) {
    const T t = TanhOf(x);
    const T du = kScale<T> * (T{1} + T{3} * kCubic<T> * x * x);
    return T{0.5} * (T{1} + t) + T{0.5} * x * (T{1} - t * t) * du;
  }
};

template <typename Form>
absl::StatusOr<std::unique_ptr<Kernel>> ForwardKernel(const KernelSpec& spec) {
  const TensorType& type = spec.inputs[0].type;
  return ForFloats(spec, type.dtype, [n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [n](const KernelArguments& arguments) {
      const T* x = Input<T>(arguments, 0);
      T* y = Output<T>(arguments, 0);
      ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) y[i] = Form::Value(x[i]);
      });
      return absl::OkStatus();
    });
  });
}

template <typename Form>
absl::StatusOr<std::unique_ptr<Kernel>> GradKernel(const KernelSpec& spec) {
  const TensorType& type = spec.inputs[0].type;
  return ForFloats(spec, type.dtype, [n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [n](const KernelArguments& arguments) {
      const T* dy = Input<T>(arguments, 0);
      const T* x = Input<T>(arguments, 1);
      T* dx = Output<T>(arguments, 0);
      ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * Form::Slope(x[i]);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<bool> IsApproximate(const KernelSpec& spec) {
  const std::string approximate = spec.attributes.String("approximate", "none");
  if (approximate == "tanh" || approximate == "none") return approximate == "tanh";
  return Invalid(spec, "approximate is '" + approximate + "', wanted 'none' or 'tanh'");
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGelu(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, spec.inputs[0].type));
  ASSIGN_OR_RETURN(const bool approximate, IsApproximate(spec));
  return approximate ? ForwardKernel<TanhApproximation>(spec) : ForwardKernel<Exact>(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGeluGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  RETURN_IF_ERROR(CheckInput(spec, 1, spec.inputs[0].type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, spec.inputs[0].type));
  ASSIGN_OR_RETURN(const bool approximate, IsApproximate(spec));
  return approximate ? GradKernel<TanhApproximation>(spec) : GradKernel<Exact>(spec);
}

}  // namespace

void RegisterGeluKernels(KernelRegistry& registry) {
  registry.Add("Gelu", "", PrepareGelu);
  registry.Add("GeluGrad", kPipecDomain, PrepareGeluGrad);
}

}  // namespace pipec::cpu
