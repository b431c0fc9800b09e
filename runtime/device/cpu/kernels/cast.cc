// Cast between all element types (convert.h, cast_tiny.h).
#include <memory>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"
#include "runtime/device/cpu/kernels/cast_tiny.h"
#include "runtime/device/cpu/kernels/convert.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/small_float_rows.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

template <typename T>
constexpr bool kIsSmall = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename From, typename To>
void Loop(const void* x, void* y, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
  if constexpr (kIsSmall<From> && std::is_same_v<To, float>) return WidenRow(from, to, n);
  if constexpr (kIsSmall<To> && std::is_same_v<From, float>) return RoundRow(from, to, n);
#pragma GCC ivdep  // y may be x if the sizes agree, which no step of the loop notices
  for (int64_t i = 0; i < n; ++i) to[i] = Convert<To>(from[i]);
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const auto to = static_cast<DType>(spec.attributes.Int("to", 0));
  if (IsTiny(x.dtype) || IsTiny(to)) return PrepareTinyCast(spec, to);
  const auto loop = ForType<ElementKernel::Loop>(Castable(), x.dtype, [to](auto from) {
    using From = typename decltype(from)::type;
    return ForType<ElementKernel::Loop>(
        Castable(), to, [](auto t) -> ElementKernel::Loop { return Loop<From, typename decltype(t)::type>; });
  });
  if (loop == nullptr) return NoKernelFor(spec, SizeOf(x.dtype) == 0 ? x.dtype : to);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {to, x.shape}));
  return std::make_unique<ElementKernel>(loop, x.elements(), SizeOf(x.dtype), SizeOf(to));
}

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) { registry.Add("Cast", "", Prepare); }

}  // namespace pipec::cpu
