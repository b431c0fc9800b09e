// ConvInteger (x, w, zero point of x?, of w?) -> (int32 y) and QLinearConv (x,
// scale, zero point, w, scale, zero point, scale and zero point of y, bias?) ->
// (y). Both convolve what is left of the bytes when the zero points are taken
// off, in int32: so padding counts as the zero point.
#include <algorithm>

#include "runtime/device/cpu/kernels/convolution.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/quantized.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

// The convolution of operands 0 and `w`, whose zero points are x_zero and
// w_zero; that of w may be one for each channel.
struct IntegerConvolution {
  Convolution convolution;
  int w = 1, x_zero = 2, w_zero = 3;
  DType x_type = DType::kUndefined, w_type = DType::kUndefined;
  int64_t x_elements = 0, w_elements = 0, w_zero_step = 0;
  bool has_x_zero = false, has_w_zero = false;

  int64_t channels() const { return convolution.groups * convolution.y_channels; }
  int64_t x_bytes() const { return (x_elements * 4 + 63) / 64 * 64; }
  int64_t workspace_bytes() const { return x_bytes() + (w_elements * 4 + 63) / 64 * 64; }
};

absl::Status Read(const KernelSpec &spec, IntegerConvolution &c) {
  const TensorType &x = spec.inputs[0].type, &w = spec.inputs[c.w].type;
  ASSIGN_OR_RETURN(c.convolution, ReadConvolution(spec, x.shape, w.shape, spec.outputs[0].type.shape, false));
  c.x_type = x.dtype, c.w_type = w.dtype;
  c.x_elements = x.elements(), c.w_elements = w.elements();
  c.has_x_zero = Has(spec, c.x_zero), c.has_w_zero = Has(spec, c.w_zero);
  RETURN_IF_ERROR(CheckInputElements(spec, c.x_zero, x.dtype, 1));
  ASSIGN_OR_RETURN(c.w_zero_step, ParameterStep(spec, c.w_zero, w.dtype, c.channels()));
  for (DType dtype : {x.dtype, w.dtype}) {
    if (dtype != DType::kUint8 && dtype != DType::kInt8) return NoKernelFor(spec, dtype);
  }
  return absl::OkStatus();
}

template <typename T>
void CentreOperand(const KernelArguments &arguments, int k, int zero, bool has_zero, int64_t step,
                   int64_t places, int64_t inner, int32_t *to) {
  Centre(Input<T>(arguments, k), has_zero ? Input<T>(arguments, zero) : nullptr, step, 1, places, inner, to);
}

void Run(const IntegerConvolution &c, const KernelArguments &arguments, const int32_t *bias, int32_t *y) {
  auto *const x = static_cast<int32_t *>(arguments.workspace);
  auto *const w = reinterpret_cast<int32_t *>(static_cast<std::byte *>(arguments.workspace) + c.x_bytes());
  const int64_t channels = std::max<int64_t>(c.channels(), 1), w_inner = c.w_elements / channels;
  (c.x_type == DType::kUint8 ? CentreOperand<uint8_t> : CentreOperand<int8_t>)(arguments, 0, c.x_zero,
                                                                               c.has_x_zero, 0, 1,
                                                                               c.x_elements, x);
  (c.w_type == DType::kUint8 ? CentreOperand<uint8_t> : CentreOperand<int8_t>)(arguments, c.w, c.w_zero,
                                                                               c.has_w_zero, c.w_zero_step,
                                                                               channels, w_inner, w);
  Convolve(c.convolution, x, w, bias, y);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareConvInteger(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  IntegerConvolution c;
  RETURN_IF_ERROR(Read(spec, c));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt32, spec.outputs[0].type.shape}));
  return MakeKernel(c.workspace_bytes(), [c](const KernelArguments &arguments) {
    Run(c, arguments, nullptr, Output<int32_t>(arguments, 0));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareQLinearConv(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 8, .max_inputs = 9}));
  IntegerConvolution c{.w = 3, .x_zero = 2, .w_zero = 5};
  RETURN_IF_ERROR(Read(spec, c));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kFloat32, 1));
  ASSIGN_OR_RETURN(const int64_t scale_step, ParameterStep(spec, 4, DType::kFloat32, c.channels()));
  RETURN_IF_ERROR(CheckInputElements(spec, 6, DType::kFloat32, 1));
  const TensorType &y_type = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckInputElements(spec, 7, y_type.dtype, 1));
  RETURN_IF_ERROR(CheckInputElements(spec, 8, DType::kInt32, c.channels()));
  const bool bias = Has(spec, 8);
  const int64_t elements = y_type.elements(), windows = c.convolution.windows.windows(),
                channels = c.channels();
  // The int32 result lies behind the operands.
  const int64_t workspace = c.workspace_bytes() + elements * 4;
  auto kernel = ForType<std::unique_ptr<Kernel>>(Bytes(), y_type.dtype, [=](auto t) {
    using T = typename decltype(t)::type;
    return MakeKernel(workspace, [=](const KernelArguments &arguments) {
      auto *const wide =
          reinterpret_cast<int32_t *>(static_cast<std::byte *>(arguments.workspace) + c.workspace_bytes());
      Run(c, arguments, bias ? Input<int32_t>(arguments, 8) : nullptr, wide);
      const float x_scale = *Input<float>(arguments, 1), y_scale = *Input<float>(arguments, 6);
      const float *const w_scale = Input<float>(arguments, 4);
      const int32_t y_zero = *Input<T>(arguments, 7);
      T *const y = Output<T>(arguments, 0);
      ParallelFor(elements, kElementGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const float factor = x_scale * w_scale[i / windows % channels * scale_step] / y_scale;
          y[i] = Quantised<T>(static_cast<float>(wide[i]) * factor, y_zero);
        }
      });
      return absl::OkStatus();
    });
  });
  if (kernel == nullptr) return NoKernelFor(spec, y_type.dtype);
  return kernel;
}

}  // namespace

void RegisterQuantizedConvolutionKernels(KernelRegistry &registry) {
  registry.Add("ConvInteger", "", PrepareConvInteger);
  registry.Add("QLinearConv", "", PrepareQLinearConv);
}

}  // namespace pipec::cpu
