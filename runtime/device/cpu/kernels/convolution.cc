// Conv and ConvTranspose (X, W, bias?) -> (Y) over 1 to 3 spatial axes:
// oneDNN's for float32, loops for float64.
#include "runtime/device/cpu/kernels/convolution.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

namespace {

template <bool kTransposed>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type, &w = spec.inputs[1].type, &y = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckInputType(spec, 1, x.dtype));
  ASSIGN_OR_RETURN(const Convolution c, ReadConvolution(spec, x.shape, w.shape, y.shape, kTransposed));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, x.dtype, c.groups * c.y_channels));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  const bool bias = Has(spec, 2);
  if (!kTransposed && x.dtype == DType::kFloat32 && IsPointwise(c) && c.multiplications() > 0)
    return MakePointwiseConvolution(c, bias);
  if (IsOneDnnFloat(x.dtype) && c.multiplications() > 0)
    return MakeOneDnnConvolution(c, x.dtype, kTransposed, bias);
  return ForFloats(spec, x.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      constexpr auto kRun = kTransposed ? ConvolveTransposed<T> : Convolve<T>;
      kRun(c, Input<T>(arguments, 0), Input<T>(arguments, 1), bias ? Input<T>(arguments, 2) : nullptr,
           Output<T>(arguments, 0));
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterConvolutionKernels(KernelRegistry &registry) {
  registry.Add("Conv", "", Prepare<false>);
  registry.Add("ConvTranspose", "", Prepare<true>);
}

}  // namespace pipec::cpu
