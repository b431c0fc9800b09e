// Gelu (X) -> (Y) and GeluGrad (dY, X) -> (dX), exact or with ONNX's tanh approximation: oneDNN's for
// float32 and 16-bit floats, loops for float64. The result may lie where an operand lies.
#include <cmath>
#include <numbers>
#include <string>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/onednn_element.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kGrain = 4096;

// gelu(x) = x * cdf(x); the derivative is cdf(x) + x * pdf(x).
struct Exact {
  static double Cdf(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
  static double Value(double x) { return x * Cdf(x); }
  static double Slope(double x) {
    return Cdf(x) + x * (std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * x * x));
  }
};

// gelu(x) = x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct TanhApproximation {
  static constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  static constexpr double kCubic = 0.044715;

  static double TanhOf(double x) { return std::tanh(kScale * (x + kCubic * x * x * x)); }
  static double Value(double x) { return 0.5 * x * (1 + TanhOf(x)); }
  static double Slope(double x) {
    const double t = TanhOf(x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
  }
};

template <typename Form>
std::unique_ptr<Kernel> ForwardKernel(int64_t n) {
  return MakeKernel(0, [n](const KernelArguments& arguments) {
    const double* x = Input<double>(arguments, 0);
    double* y = Output<double>(arguments, 0);
    ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Form::Value(x[i]);
    });
    return absl::OkStatus();
  });
}

template <typename Form>
std::unique_ptr<Kernel> GradKernel(int64_t n) {
  return MakeKernel(0, [n](const KernelArguments& arguments) {
    const double* dy = Input<double>(arguments, 0);
    const double* x = Input<double>(arguments, 1);
    double* dx = Output<double>(arguments, 0);
    ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * Form::Slope(x[i]);
    });
    return absl::OkStatus();
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
  const int64_t n = spec.inputs[0].type.elements();
  switch (spec.inputs[0].type.dtype) {
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kFloat16:
      return MakeOneDnnGelu(spec.inputs[0].type.dtype, n, approximate);
    case DType::kFloat64:
      return approximate ? ForwardKernel<TanhApproximation>(n) : ForwardKernel<Exact>(n);
    default:
      return NoKernelFor(spec, spec.inputs[0].type.dtype);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGeluGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  RETURN_IF_ERROR(CheckInput(spec, 1, spec.inputs[0].type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, spec.inputs[0].type));
  ASSIGN_OR_RETURN(const bool approximate, IsApproximate(spec));
  const int64_t n = spec.inputs[0].type.elements();
  switch (spec.inputs[0].type.dtype) {
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kFloat16:
      return MakeOneDnnGeluGrad(spec.inputs[0].type.dtype, n, approximate);
    case DType::kFloat64:
      return approximate ? GradKernel<TanhApproximation>(n) : GradKernel<Exact>(n);
    default:
      return NoKernelFor(spec, spec.inputs[0].type.dtype);
  }
}

}  // namespace

void RegisterGeluKernels(KernelRegistry& registry) {
  registry.Add("Gelu", "", PrepareGelu);
  registry.Add("GeluGrad", kPipecDomain, PrepareGeluGrad);
}

}  // namespace pipec::cpu
