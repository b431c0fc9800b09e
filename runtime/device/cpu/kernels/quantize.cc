// QuantizeLinear (x, scale, zero point?) -> (q) and DequantizeLinear (q, scale,
// zero point?) -> (x).
#include <algorithm>

#include "runtime/device/cpu/kernels/axis.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/quantized.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

using Quantities = TypeList<uint8_t, int8_t, uint16_t, int16_t>;

// The tensor is (outer, length, inner); the scale of element (o, l, i) is at o
// * outer_step + l / block * step + i * inner_step. One scale for all: every
// step is 0; one for each place of the axis: only `step` is not; blocks: none
// is.
struct Scales {
  AxisView view;
  int64_t block = 1; // places of the axis that share a scale
  int64_t outer_step = 0, step = 0, inner_step = 0; // in scale
};

absl::StatusOr<Scales> ReadScales(const KernelSpec &spec) {
  const Shape &x = spec.inputs[0].type.shape,
              &scale = spec.inputs[1].type.shape;
  const auto wrong = [&](absl::string_view why) {
    return Invalid(spec,
                   absl::StrCat("the tensor is ", ToString(x), ", its scale ",
                                ToString(scale), ": ", why));
  };
  if (Has(spec, 2) && spec.inputs[2].type.shape != scale)
    return wrong("the zero point has another shape");
  Scales scales;
  const int64_t block = spec.attributes.Int("block_size", 0);
  if (block < 0)
    return wrong(absl::StrCat("block_size is ", block));
  if (NumElements(scale) == 1 && block == 0) {
    scales.view = {1, NumElements(x), 1};
    return scales;
  }
  const int rank = static_cast<int>(x.size());
  absl::StatusOr<int> axis =
      NormaliseAxis(spec.attributes.Int("axis", 1), rank);
  if (!axis.ok())
    return wrong(axis.status().message());
  ASSIGN_OR_RETURN(scales.view, ViewAlong(x, *axis));
  if (block == 0) {
    if (scale != Shape{x[*axis]})
      return wrong("wanted one scale, or one for each place of the axis");
    scales.step = 1;
    return scales;
  }
  Shape wanted = x;
  wanted[*axis] = (x[*axis] + block - 1) / block;
  if (scale != wanted)
    return wrong(
        absl::StrCat("wanted ", ToString(wanted), " for blocks of ", block));
  scales.block = block;
  scales.outer_step = wanted[*axis] * scales.view.inner;
  scales.step = scales.view.inner;
  scales.inner_step = 1;
  return scales;
}

// f(place in the tensor, place in scale) for all elements, in parallel.
template <typename F> void ForEach(const Scales &scales, const F &f) {
  const auto [outer, length, inner] = scales.view;
  ParallelFor(outer * length,
              std::max<int64_t>(1, kElementGrain / std::max<int64_t>(inner, 1)),
              [&, length = length, inner = inner](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t at = row / length * scales.outer_step +
                                     row % length / scales.block * scales.step;
                  for (int64_t i = 0; i < inner; ++i)
                    f(row * inner + i, at + i * scales.inner_step);
                }
              });
}

template <typename Q>
std::unique_ptr<Kernel> MakeQuantize(const Scales &scales, DType x_type,
                                     bool has_zero) {
  return MakeKernel(0, [=](const KernelArguments &arguments) {
    const float *const scale = Input<float>(arguments, 1);
    const Q *const zero = has_zero ? Input<Q>(arguments, 2) : nullptr;
    Q *const q = Output<Q>(arguments, 0);
    const auto run = [&](const auto *x) {
      ForEach(scales, [=](int64_t i, int64_t s) {
        q[i] = Quantised<Q>(static_cast<float>(x[i]) / scale[s],
                            zero == nullptr ? 0 : zero[s]);
      });
    };
    if (x_type == DType::kFloat32) {
      run(Input<float>(arguments, 0));
    } else {
      run(Input<int32_t>(arguments, 0));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>>
PrepareQuantize(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type;
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kInt32)
    return NoKernelFor(spec, x.dtype);
  if (spec.inputs[1].type.dtype != DType::kFloat32)
    return NoKernelFor(spec, spec.inputs[1].type.dtype);
  const bool has_zero = Has(spec, 2);
  const DType dtype = spec.outputs[0].type.dtype;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, x.shape}));
  if (has_zero)
    RETURN_IF_ERROR(CheckInputType(spec, 2, dtype));
  ASSIGN_OR_RETURN(const Scales scales, ReadScales(spec));
  auto kernel =
      ForType<std::unique_ptr<Kernel>>(Quantities(), dtype, [&](auto t) {
        return MakeQuantize<typename decltype(t)::type>(scales, x.dtype,
                                                        has_zero);
      });
  if (kernel == nullptr)
    return NoKernelFor(spec, dtype);
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>>
PrepareDequantize(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &q = spec.inputs[0].type, &y = spec.outputs[0].type;
  const DType scale = spec.inputs[1].type.dtype;
  if (scale != DType::kFloat32)
    return NoKernelFor(spec, scale);
  if (y.dtype != DType::kFloat32)
    return NoKernelFor(spec, y.dtype);
  const bool has_zero = Has(spec, 2);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat32, q.shape}));
  if (has_zero)
    RETURN_IF_ERROR(CheckInputType(spec, 2, q.dtype));
  ASSIGN_OR_RETURN(const Scales scales, ReadScales(spec));
  using Types = TypeList<uint8_t, int8_t, uint16_t, int16_t, int32_t>;
  auto kernel = ForType<std::unique_ptr<Kernel>>(Types(), q.dtype, [&](auto t) {
    using Q = typename decltype(t)::type;
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      const Q *const q = Input<Q>(arguments, 0);
      const Q *const zero = has_zero ? Input<Q>(arguments, 2) : nullptr;
      const float *const scale = Input<float>(arguments, 1);
      float *const y = Output<float>(arguments, 0);
      ForEach(scales, [=](int64_t i, int64_t s) {
        const int64_t centred =
            static_cast<int64_t>(q[i]) -
            (zero == nullptr ? 0 : static_cast<int64_t>(zero[s]));
        y[i] = static_cast<float>(centred) * scale[s];
      });
      return absl::OkStatus();
    });
  });
  if (kernel == nullptr)
    return NoKernelFor(spec, q.dtype);
  return kernel;
}

} // namespace

void RegisterQuantizeKernels(KernelRegistry &registry) {
  registry.Add("DequantizeLinear", "", PrepareDequantize);
  registry.Add("QuantizeLinear", "", PrepareQuantize);
}

} // namespace pipec::cpu
