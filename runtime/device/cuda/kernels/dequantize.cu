// DequantizeLinear (q, scale, zero point?) -> (x) of integers of 8 bits and more, in float32: (q - zero point) * scale.
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/quantization.h"

namespace pipec::cuda {
namespace {

template <typename Q>
__global__ void __launch_bounds__(kThreads) Dequantize(const Q* q, const float* scale, const Q* zero,
                                                       float* y, int64_t n, const QuantizationScales scales) {
  const int64_t inner = scales.view.inner, length = scales.view.length;
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) {
    const int64_t row = i / inner, outer = row / length;
    const int64_t at = outer * scales.outer_step + (row - outer * length) / scales.block * scales.step +
                       (i - row * inner) * scales.inner_step;
    const int64_t centred =
        static_cast<int64_t>(q[i]) - (zero == nullptr ? int64_t{0} : static_cast<int64_t>(zero[at]));
    y[i] = static_cast<float>(centred) * scale[at];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  const TensorType &q = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (y.dtype != DType::kFloat32) return NoKernelFor(spec, y.dtype);
  if (spec.inputs[1].type.dtype != DType::kFloat32) return NoKernelFor(spec, spec.inputs[1].type.dtype);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat32, q.shape}));
  const bool has_zero = Has(spec, 2);
  if (has_zero) RETURN_IF_ERROR(CheckInputType(spec, 2, q.dtype));
  ASSIGN_OR_RETURN(const QuantizationScales scales, QuantizationScales::Of(spec));
  using Types = TypeList<uint8_t, int8_t, uint16_t, int16_t, int32_t>;
  return ForTypes(Types(), spec, q.dtype, [=, n = q.elements()](auto tag) {
    using Q = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      return Launch(Dequantize<Q>, BlocksFor(n), kThreads, stream, Input<Q>(arguments, 0),
                    Input<float>(arguments, 1), has_zero ? Input<Q>(arguments, 2) : nullptr,
                    Output<float>(arguments, 0), n, scales);
    });
  });
}

}  // namespace

void RegisterDequantizeKernels(KernelRegistry& registry) { registry.Add("DequantizeLinear", "", Prepare); }

}  // namespace pipec::cuda
