// BitwiseAnd, BitwiseOr, BitwiseXor and BitShift of integers, broadcast. A
// shift by all bits or more leaves 0.
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/kernels/binary_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

using UnsignedIntegers = TypeList<uint64_t, uint32_t, uint16_t, uint8_t>;

struct BitwiseAndOp {
  using Types = Integers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOrOp {
  using Types = Integers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXorOp {
  using Types = Integers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct ShiftLeftOp {
  using Types = UnsignedIntegers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<Wrapping<T>>(a) << b);
  }
};
struct ShiftRightOp {
  using Types = UnsignedIntegers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> b);
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dtype));
  const auto loop =
      ForType<BinaryKernel::Loop>(typename Op::Types(), dtype, [](auto t) -> BinaryKernel::Loop {
        using T = typename decltype(t)::type;
        return BinaryLoop<Op, T, T, T>;
      });
  return MakeBinaryKernel(spec, loop, dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareShift(const KernelSpec &spec) {
  const std::string direction = spec.attributes.String("direction");
  if (direction == "LEFT") return Prepare<ShiftLeftOp>(spec);
  if (direction == "RIGHT") return Prepare<ShiftRightOp>(spec);
  return Invalid(spec, absl::StrCat("direction is '", direction, "', wanted LEFT or RIGHT"));
}

}  // namespace

void RegisterBitwiseKernels(KernelRegistry &registry) {
  registry.Add("BitShift", "", PrepareShift);
  registry.Add("BitwiseAnd", "", Prepare<BitwiseAndOp>);
  registry.Add("BitwiseOr", "", Prepare<BitwiseOrOp>);
  registry.Add("BitwiseXor", "", Prepare<BitwiseXorOp>);
}

}  // namespace pipec::cpu
