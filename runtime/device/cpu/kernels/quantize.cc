// QuantizeLinear (x, scale, zero point?) -> (q) and DequantizeLinear (q, scale,
// zero point?) -> (x).
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "runtime/base/tiny_types.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/quantized.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/quantization.h"

namespace pipec::cpu {
namespace {

using Quantities = TypeList<uint8_t, int8_t, uint16_t, int16_t>;

// f(place in the tensor, place in scale) for all elements, in parallel.
template <typename F>
void ForEach(const QuantizationScales& scales, const F& f) {
  const auto [outer, length, inner] = scales.view;
  ParallelFor(outer * length, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(inner, 1)),
              [&, length = length, inner = inner](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t at =
                      row / length * scales.outer_step + row % length / scales.block * scales.step;
                  for (int64_t i = 0; i < inner; ++i) f(row * inner + i, at + i * scales.inner_step);
                }
              });
}

using MadeKernel = std::unique_ptr<Kernel>;

// Operand 1 as float32, whatever its type; in the workspace if it is another.
struct ScaleReader {
  DType dtype;
  int64_t elements;

  static absl::StatusOr<ScaleReader> Of(const KernelSpec& spec) {
    const TensorType& type = spec.inputs[1].type;
    if (type.dtype != DType::kFloat32 && type.dtype != DType::kInt32 && type.dtype != DType::kFloat8E8M0) {
      return NoKernelFor(spec, type.dtype);
    }
    return ScaleReader{type.dtype, type.elements()};
  }
  int64_t workspace_bytes() const {
    return dtype == DType::kFloat32 ? 0 : elements * static_cast<int64_t>(sizeof(float));
  }
  const float* Read(const KernelArguments& arguments) const {
    if (dtype == DType::kFloat32) return Input<float>(arguments, 1);
    auto* const wide = static_cast<float*>(arguments.workspace);
    for (int64_t i = 0; i < elements; ++i) {
      wide[i] = dtype == DType::kInt32
                    ? static_cast<float>(Input<int32_t>(arguments, 1)[i])
                    : static_cast<float>(DecodeTiny(dtype, Input<uint8_t>(arguments, 1)[i]));
    }
    return wide;
  }
};

// q = quantise(x / scale, zero point), x being float32 or int32.
template <typename Q, typename Quantise>
MadeKernel MakeQuantize(const QuantizationScales& scales, const ScaleReader& reader, DType x_type, bool has_zero,
                        const Quantise& quantise) {
  return MakeKernel(reader.workspace_bytes(), [=](const KernelArguments& arguments) {
    const float* const scale = reader.Read(arguments);
    const Q* const zero = has_zero ? Input<Q>(arguments, 2) : nullptr;
    Q* const q = Output<Q>(arguments, 0);
    const auto run = [&](const auto* x) {
      ForEach(scales, [=](int64_t i, int64_t s) {
        q[i] = quantise(static_cast<float>(x[i]) / scale[s], zero == nullptr ? Q{0} : zero[s]);
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

// The numbers of all bytes of a tiny type.
std::array<float, 256> TinyTable(DType dtype) {
  std::array<float, 256> table;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = static_cast<float>(DecodeTiny(dtype, static_cast<uint8_t>(byte)));
  }
  return table;
}

MadeKernel MakeTinyQuantize(const QuantizationScales& scales, const ScaleReader& reader, DType x_type, bool has_zero,
                            DType dtype, bool saturate) {
  const TinyEncoder encode(dtype, saturate);
  if (!IsTinyInteger(dtype)) {
    const auto table = TinyTable(dtype);
    return MakeQuantize<uint8_t>(scales, reader, x_type, has_zero, [=](float x, uint8_t zero) {
      return encode(has_zero ? x + table[zero] : x);
    });
  }
  const auto [least, most] = RangeOf(dtype);
  return MakeQuantize<uint8_t>(
      scales, reader, x_type, has_zero, [=, least = least, most = most](float x, uint8_t zero) {
        const double sum = std::nearbyint(x) + DecodeTiny(dtype, zero);
        return encode(sum == sum ? std::clamp<double>(sum, least, most) : DecodeTiny(dtype, zero));
      });
}

absl::StatusOr<MadeKernel> PrepareQuantize(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType& x = spec.inputs[0].type;
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kInt32) return NoKernelFor(spec, x.dtype);
  const auto precision = static_cast<DType>(spec.attributes.Int("precision", 0));
  if (precision != DType::kUndefined && precision != DType::kFloat32) return NoKernelFor(spec, precision);
  ASSIGN_OR_RETURN(const ScaleReader reader, ScaleReader::Of(spec));
  const bool has_zero = Has(spec, 2);
  const DType dtype = spec.outputs[0].type.dtype;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, x.shape}));
  if (has_zero) RETURN_IF_ERROR(CheckInputType(spec, 2, dtype));
  ASSIGN_OR_RETURN(const QuantizationScales scales, QuantizationScales::Of(spec));
  if (IsTiny(dtype) && dtype != DType::kFloat8E8M0) {
    return MakeTinyQuantize(scales, reader, x.dtype, has_zero, dtype,
                            spec.attributes.Int("saturate", 1) != 0);
  }
  auto kernel = ForType<MadeKernel>(Quantities(), dtype, [&](auto t) {
    using Q = typename decltype(t)::type;
    return MakeQuantize<Q>(scales, reader, x.dtype, has_zero,
                           [](float x, Q zero) { return Quantised<Q>(x, zero); });
  });
  if (kernel == nullptr) return NoKernelFor(spec, dtype);
  return kernel;
}

// y = centred(q, zero point) * scale.
template <typename Q, typename Centred>
MadeKernel MakeDequantize(const QuantizationScales& scales, const ScaleReader& reader, bool has_zero,
                          const Centred& centred) {
  return MakeKernel(reader.workspace_bytes(), [=](const KernelArguments& arguments) {
    const Q* const q = Input<Q>(arguments, 0);
    const Q* const zero = has_zero ? Input<Q>(arguments, 2) : nullptr;
    const float* const scale = reader.Read(arguments);
    float* const y = Output<float>(arguments, 0);
    ForEach(scales,
            [=](int64_t i, int64_t s) { y[i] = centred(q[i], zero == nullptr ? Q{0} : zero[s]) * scale[s]; });
    return absl::OkStatus();
  });
}

absl::StatusOr<MadeKernel> PrepareDequantize(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &q = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (y.dtype != DType::kFloat32) return NoKernelFor(spec, y.dtype);
  ASSIGN_OR_RETURN(const ScaleReader reader, ScaleReader::Of(spec));
  const bool has_zero = Has(spec, 2);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat32, q.shape}));
  if (has_zero) RETURN_IF_ERROR(CheckInputType(spec, 2, q.dtype));
  ASSIGN_OR_RETURN(const QuantizationScales scales, QuantizationScales::Of(spec));
  if (IsTiny(q.dtype)) {
    return MakeDequantize<uint8_t>(scales, reader, has_zero,
                                   [=, table = TinyTable(q.dtype)](uint8_t q, uint8_t zero) {
                                     return has_zero ? table[q] - table[zero] : table[q];
                                   });
  }
  using Types = TypeList<uint8_t, int8_t, uint16_t, int16_t, int32_t>;
  auto kernel = ForType<MadeKernel>(Types(), q.dtype, [&](auto t) {
    using Q = typename decltype(t)::type;
    return MakeDequantize<Q>(scales, reader, has_zero, [](Q q, Q zero) {
      return static_cast<float>(static_cast<int64_t>(q) - static_cast<int64_t>(zero));
    });
  });
  if (kernel == nullptr) return NoKernelFor(spec, q.dtype);
  return kernel;
}

}  // namespace

void RegisterQuantizeKernels(KernelRegistry& registry) {
  registry.Add("DequantizeLinear", "", PrepareDequantize);
  registry.Add("QuantizeLinear", "", PrepareQuantize);
}

}  // namespace pipec::cpu
