// Add, Sub, Mul, Div, Mod of two operands. Integers wrap around; Div truncates towards zero; a zero divisor
// of an integer is an error of the data.
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/kernels/binary_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

struct AddOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct SubOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct MulOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct DivOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T{-1}) return SubOp::Of(T{0}, a);  // the least integer divided by -1 traps
    }
    return static_cast<T>(a / b);
  }
};

// The sign of the divisor, as Python's %.
struct ModOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    }
    return static_cast<T>(a % b);
  }
};

// The sign of the dividend, as C's fmod.
struct FmodOp {
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return T{0};
      }
      return static_cast<T>(a % b);
    }
  }
};

template <typename T>
absl::Status CheckNoZero(const void* b, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    if (static_cast<const T*>(b)[i] == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("integer division by zero: element ", i, " of input 1 is 0"));
    }
  }
  return absl::OkStatus();
}

template <typename Op, typename Types>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareOver(const KernelSpec& spec, bool divides) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dtype));
  const auto loop = ForType<BinaryKernel::Loop>(Types(), dtype, [](auto t) -> BinaryKernel::Loop {
    using T = typename decltype(t)::type;
    return BinaryLoop<Op, T, T, T>;
  });
  const auto check = ForType<BinaryKernel::Check>(Integers(), dtype, [](auto t) -> BinaryKernel::Check {
    return CheckNoZero<typename decltype(t)::type>;
  });
  return MakeBinaryKernel(spec, loop, dtype, divides ? check : nullptr);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  return PrepareOver<Op, Numbers>(spec, std::is_same_v<Op, DivOp>);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMod(const KernelSpec& spec) {
  if (spec.attributes.Int("fmod", 0) != 0) return PrepareOver<FmodOp, Numbers>(spec, true);
  if (!spec.inputs.empty() && IsFloat(spec.inputs[0].type.dtype)) {
    return Invalid(spec, "floats need the attribute fmod=1");
  }
  return PrepareOver<ModOp, Integers>(spec, true);
}

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  registry.Add("Add", "", Prepare<AddOp>);
  registry.Add("Div", "", Prepare<DivOp>);
  registry.Add("Mod", "", PrepareMod);
  registry.Add("Mul", "", Prepare<MulOp>);
  registry.Add("Sub", "", Prepare<SubOp>);
}

}  // namespace pipec::cpu
