// Pow: base and exponent may have different types, the result has the base's.
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/kernels/binary_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/saturate.h"

namespace pipec::cpu {
namespace {

using Bases = TypeList<float, double, int32_t, int64_t>;

// By squaring, modulo 2^bits. A negative exponent truncates 1 / base^|exponent| towards zero; 0 has no such
// power: 0.
template <typename T, typename E>
T IntegerPower(T base, E exponent) {
  if constexpr (std::is_signed_v<E>) {
    if (exponent < 0) return base == 1 ? T{1} : base == T{-1} ? (exponent % 2 != 0 ? T{-1} : T{1}) : T{0};
  }
  std::make_unsigned_t<T> result = 1, square = static_cast<std::make_unsigned_t<T>>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1, square *= square) {
    if (rest & 1) result *= square;
  }
  return static_cast<T>(result);
}

struct PowOp {
  template <typename T, typename E>
  static PIPEC_INLINE T Of(T base, E exponent) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
      return IntegerPower(base, exponent);
    } else if constexpr (std::is_integral_v<T>) {
      return Saturate<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    } else if constexpr (std::is_same_v<T, float> && std::is_same_v<E, float>) {
      return std::pow(base, exponent);
    } else {
      return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
  }
};

// The square, which variances are written with, without the C library's call.
struct SquareOp {
  template <typename T, typename E>
  static PIPEC_INLINE T Of(T base, E) {
    return base * base;
  }
};

template <typename T, typename E>
void Loop(const Broadcast<2>& broadcast, const void* base, const void* exponent, void* result) {
  if constexpr (std::is_floating_point_v<T>) {
    bool scalar = true;
    for (int axis = 0; axis < broadcast.rank; ++axis) scalar = scalar && broadcast.strides[1][axis] == 0;
    if (scalar && broadcast.elements > 0 && *static_cast<const E*>(exponent) == E{2}) {
      return BinaryLoop<SquareOp, T, E, T>(broadcast, base, exponent, result);
    }
  }
  BinaryLoop<PowOp, T, E, T>(broadcast, base, exponent, result);
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType base = spec.inputs[0].type.dtype, exponent = spec.inputs[1].type.dtype;
  const auto loop = ForType<BinaryKernel::Loop>(Bases(), base, [exponent](auto t) {
    using T = typename decltype(t)::type;
    return ForType<BinaryKernel::Loop>(Numbers(), exponent, [](auto e) -> BinaryKernel::Loop {
      return Loop<T, typename decltype(e)::type>;
    });
  });
  return MakeBinaryKernel(spec, loop, base);
}

}  // namespace

void RegisterPowKernels(KernelRegistry& registry) { registry.Add("Pow", "", Prepare); }

}  // namespace pipec::cpu
