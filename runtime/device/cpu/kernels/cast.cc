// Cast between all element types. Floats become integers by truncation, held to the integer's range
// (saturate.h); integers that do not fit wrap around; anything but 0 is true.
#include <memory>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/saturate.h"
#include "runtime/device/cpu/kernels/small_floats.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {
namespace {

using Everything = TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t,
                            uint8_t, bool, Float16, BFloat16>;

template <typename T>
PIPEC_INLINE auto Widened(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

template <typename To, typename From>
PIPEC_INLINE To Convert(From from) {
  const auto x = Widened(from);
  using X = std::remove_const_t<decltype(x)>;
  if constexpr (std::is_same_v<To, Float16>) {
    return ToFloat16(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != X{0};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
    return Saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void Loop(const void* x, void* y, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
#pragma GCC ivdep  // y may be x if the sizes agree, which no step of the loop notices
  for (int64_t i = 0; i < n; ++i) to[i] = Convert<To>(from[i]);
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const auto to = static_cast<DType>(spec.attributes.Int("to", 0));
  const auto loop = ForType<ElementKernel::Loop>(Everything(), x.dtype, [to](auto from) {
    using From = typename decltype(from)::type;
    return ForType<ElementKernel::Loop>(Everything(), to, [](auto t) -> ElementKernel::Loop {
      return Loop<From, typename decltype(t)::type>;
    });
  });
  if (loop == nullptr) return NoKernelFor(spec, SizeOf(x.dtype) == 0 ? x.dtype : to);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {to, x.shape}));
  return std::make_unique<ElementKernel>(loop, x.elements(), SizeOf(x.dtype), SizeOf(to));
}

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) { registry.Add("Cast", "", Prepare); }

}  // namespace pipec::cpu
