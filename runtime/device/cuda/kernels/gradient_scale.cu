// Pack (x...) -> (y): float64 scalars side by side.
// GradientScale (loss_sum, loss_weight?, norms...) -> (scale, gradient_norm, loss): what all optimizer ops of a
// step multiply their gradients by, and the step's two figures. norms are squared; they are added in the order that
// the attribute says. LossScale () -> (y): what the gradient of the loss starts with where gradients are float16.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// Addresses are known at the launch only: so many fit into a kernel's parameters.
constexpr int kPieces = 64;
struct Pieces {
  const double* from[kPieces];
  int64_t elements[kPieces];
};

// A piece a thread, one after the other.
__global__ void __launch_bounds__(kPieces) Gather(const Pieces pieces, int count, double* to) {
  const int own = threadIdx.x;
  if (own >= count) return;
  for (int k = 0; k < own; ++k) to += pieces.elements[k];
  for (int64_t i = 0; i < pieces.elements[own]; ++i) to[i] = pieces.from[own][i];
}

// Operands [first, first + elements.size()) end to end.
absl::Status GatherOperands(cudaStream_t stream, const KernelArguments& arguments, int first,
                            const std::vector<int64_t>& elements, double* to) {
  for (size_t begin = 0; begin < elements.size(); begin += kPieces) {
    Pieces pieces{};
    const int count = static_cast<int>(std::min<size_t>(kPieces, elements.size() - begin));
    int64_t total = 0;
    for (int k = 0; k < count; ++k) {
      pieces.from[k] = Input<double>(arguments, first + static_cast<int>(begin) + k);
      pieces.elements[k] = elements[begin + k];
      total += elements[begin + k];
    }
    RETURN_IF_ERROR(Launch(Gather, 1, kPieces, stream, pieces, count, to));
    to += total;
  }
  return absl::OkStatus();
}

struct Factors {
  double weight, divisor;
};

// One thread: the sum must not depend on how many there are.
__global__ void Scale(const double* norms, const int64_t* order, int64_t count, const double* loss_sum,
                      const double* loss_weight, const Factors factors, const StepScalars* scalars,
                      double* scale_out, double* norm_out, double* loss_out) {
  const double weight = loss_weight != nullptr ? *loss_weight : factors.weight;
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += norms[order[i]];
  const double loss_scale = factors.divisor > 0 ? scalars->loss_scale / factors.divisor : 1;
  const double norm = sqrt(squares) / fabs(weight) / loss_scale;
  double scale = 1 / weight / loss_scale;
  // As torch.nn.utils.clip_grad_norm_.
  if (const double limit = scalars->clip_norm; limit > 0) {
    const double clip = limit / (norm + 1e-6);
    if (clip < 1) scale *= clip;
  }
  *loss_out = *loss_sum / weight;
  *norm_out = norm;
  *scale_out = scale;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradientScale(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, static_cast<int>(spec.inputs.size()), 3, 3}));
  RETURN_IF_ERROR(CheckInputElements(spec, 0, DType::kFloat64, 1));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kFloat64, 1));
  for (int k = 0; k < 3; ++k) RETURN_IF_ERROR(CheckOutputElements(spec, k, DType::kFloat64, 1));
  std::vector<int64_t> elements, order;
  int64_t laid = 0;
  for (int k = 2; k < static_cast<int>(spec.inputs.size()); ++k) {
    elements.push_back(Has(spec, k) ? spec.inputs[k].type.elements() : 0);
    if (Has(spec, k)) RETURN_IF_ERROR(CheckInputType(spec, k, DType::kFloat64));
    laid += elements.back();
  }
  if (spec.attributes.Has("order")) {
    order = spec.attributes.Ints("order");
  } else {
    for (int64_t i = 0; i < laid; ++i) order.push_back(i);
  }
  for (int64_t place : order) {
    if (place >= 0 && place < laid) continue;
    return Invalid(spec, absl::StrCat("order holds ", place, ", but there are ", laid, " norms"));
  }
  const int64_t count = static_cast<int64_t>(order.size());
  ASSIGN_OR_RETURN(const void* const kept,
                   context.Keep(order.data(), count * static_cast<int64_t>(sizeof(int64_t))));
  const Factors factors{spec.attributes.Float("weight", 1), spec.attributes.Float("divisor", 0)};
  return MakeKernel(laid * static_cast<int64_t>(sizeof(double)),
                    [=, has_weight = Has(spec, 1), elements = std::move(elements)](
                        cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                      auto* const norms = static_cast<double*>(arguments.workspace);
                      RETURN_IF_ERROR(GatherOperands(stream, arguments, 2, elements, norms));
                      return Launch(Scale, 1, 1, stream, norms, static_cast<const int64_t*>(kept), count,
                                    Input<double>(arguments, 0),
                                    has_weight ? Input<double>(arguments, 1) : nullptr, factors,
                                    arguments.scalars, Output<double>(arguments, 0),
                                    Output<double>(arguments, 1), Output<double>(arguments, 2));
                    });
}

absl::StatusOr<std::unique_ptr<Kernel>> PreparePack(const KernelSpec& spec, CudaContext&) {
  const int n = static_cast<int>(spec.inputs.size());
  RETURN_IF_ERROR(CheckOperands(spec, {n, n}));
  for (int k = 0; k < n; ++k) RETURN_IF_ERROR(CheckInputElements(spec, k, DType::kFloat64, 1));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat64, {n}}));
  return MakeKernel(
      0, [ones = std::vector<int64_t>(n, 1)](cudaStream_t stream, const KernelArguments& arguments) {
        return GatherOperands(stream, arguments, 0, ones, Output<double>(arguments, 0));
      });
}

__global__ void StartOfGradient(const StepScalars* scalars, double divisor, float* y) {
  *y = static_cast<float>(scalars->loss_scale / divisor);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareLossScale(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {0, 0}));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kFloat32, 1));
  const double divisor = spec.attributes.Float("divisor", 1);
  if (!(divisor > 0)) return Invalid(spec, absl::StrCat("divisor is ", divisor, ", wanted more than 0"));
  return MakeKernel(0, [divisor](cudaStream_t stream, const KernelArguments& arguments) {
    return Launch(StartOfGradient, 1, 1, stream, arguments.scalars, divisor, Output<float>(arguments, 0));
  });
}

}  // namespace

void RegisterGradientScaleKernels(KernelRegistry& registry) {
  registry.Add("GradientScale", kPipecDomain, PrepareGradientScale);
  registry.Add("Pack", kPipecDomain, PreparePack);
  registry.Add("LossScale", kPipecDomain, PrepareLossScale);
}

}  // namespace pipec::cuda
