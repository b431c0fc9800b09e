// Pack (x...) -> (y): float64 scalars side by side.
// GradientScale (loss_sum, loss_weight?, norms...) -> (scale, gradient_norm, loss): what all optimizer ops of
// a step multiply their gradients by, and the step's two figures. norms are squared.
// LossScale () -> (y): what the gradient of the loss starts with where gradients are float16.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

// Where the squared norm of one parameter lies.
struct Place {
  int operand;
  int64_t element;
};

// The norms' operands laid end to end, then in parameter order.
absl::StatusOr<std::vector<Place>> FindNorms(const KernelSpec& spec) {
  std::vector<Place> laid;
  for (int k = 2; k < static_cast<int>(spec.inputs.size()); ++k) {
    if (!Has(spec, k)) continue;
    RETURN_IF_ERROR(CheckInputType(spec, k, DType::kFloat64));
    for (int64_t i = 0; i < spec.inputs[k].type.elements(); ++i) laid.push_back({k, i});
  }
  if (!spec.attributes.Has("order")) return laid;
  std::vector<Place> ordered;
  for (int64_t place : spec.attributes.Ints("order")) {
    if (place < 0 || place >= static_cast<int64_t>(laid.size())) {
      return Invalid(spec, absl::StrCat("order holds ", place, ", but there are ", laid.size(), " norms"));
    }
    ordered.push_back(laid[place]);
  }
  return ordered;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradientScale(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, static_cast<int>(spec.inputs.size()), 3, 3}));
  RETURN_IF_ERROR(CheckInputElements(spec, 0, DType::kFloat64, 1));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kFloat64, 1));
  for (int k = 0; k < 3; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, DType::kFloat64, 1));
  ASSIGN_OR_RETURN(std::vector<Place> norms, FindNorms(spec));
  const bool has_weight = Has(spec, 1);
  const double fixed_weight = spec.attributes.Float("weight", 1),
               divisor = spec.attributes.Float("divisor", 0);
  return MakeKernel(0, [=, norms = std::move(norms)](const KernelArguments& arguments) {
    const double weight = has_weight ? *Input<double>(arguments, 1) : fixed_weight;
    double squares = 0;
    for (const Place& place : norms) squares += Input<double>(arguments, place.operand)[place.element];
    const double loss_scale = divisor > 0 ? arguments.scalars->loss_scale / divisor : 1;
    const double norm = std::sqrt(squares) / std::abs(weight) / loss_scale;
    double scale = 1 / weight / loss_scale;
    // As torch.nn.utils.clip_grad_norm_.
    if (const double limit = arguments.scalars->clip_norm; limit > 0) {
      const double clip = limit / (norm + 1e-6);
      if (clip < 1) scale *= clip;
    }
    const double loss_sum = *Input<double>(arguments, 0);
    *Output<double>(arguments, 0) = scale;
    *Output<double>(arguments, 1) = norm;
    *Output<double>(arguments, 2) = loss_sum / weight;
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PreparePack(const KernelSpec& spec) {
  const int n = static_cast<int>(spec.inputs.size());
  RETURN_IF_ERROR(CheckOperands(spec, {n, n}));
  for (int k = 0; k < n; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, DType::kFloat64, 1));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat64, {n}}));
  return MakeKernel(0, [n](const KernelArguments& arguments) {
    double* y = Output<double>(arguments, 0);
    for (int k = 0; k < n; ++k) y[k] = *Input<double>(arguments, k);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareLossScale(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {0, 0}));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kFloat32, 1));
  const double divisor = spec.attributes.Float("divisor", 1);
  if (!(divisor > 0)) return Invalid(spec, absl::StrCat("divisor is ", divisor, ", wanted more than 0"));
  return MakeKernel(0, [divisor](const KernelArguments& arguments) {
    *Output<float>(arguments, 0) = static_cast<float>(arguments.scalars->loss_scale / divisor);
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterGradientScaleKernels(KernelRegistry& registry) {
  registry.Add("GradientScale", kPipecDomain, PrepareGradientScale);
  registry.Add("Pack", kPipecDomain, PreparePack);
  registry.Add("LossScale", kPipecDomain, PrepareLossScale);
}

}  // namespace pipec::cpu
