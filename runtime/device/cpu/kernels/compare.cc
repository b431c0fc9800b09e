// Comparisons, logic, IsNaN and IsInf: results are bool.
#include <limits>
#include <memory>
#include <type_traits>

#include "runtime/device/cpu/kernels/binary_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

#define PIPEC_BOOL_OP(name, expression)     \
  struct name##Op {                         \
    template <typename T>                   \
    static PIPEC_INLINE bool Of(T a, T b) { \
      return expression;                    \
    }                                       \
  };
PIPEC_BOOL_OP(Equal, a == b)
PIPEC_BOOL_OP(Less, a < b)
PIPEC_BOOL_OP(LessOrEqual, a <= b)
PIPEC_BOOL_OP(Greater, a > b)
PIPEC_BOOL_OP(GreaterOrEqual, a >= b)
PIPEC_BOOL_OP(And, a& b)
PIPEC_BOOL_OP(Or, a | b)
PIPEC_BOOL_OP(Xor, a != b)
#undef PIPEC_BOOL_OP

template <typename Op, typename Types>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dtype));
  const auto loop = ForType<BinaryKernel::Loop>(Types(), dtype, [](auto t) -> BinaryKernel::Loop {
    using T = typename decltype(t)::type;
    return BinaryLoop<Op, T, T, bool>;
  });
  return MakeBinaryKernel(spec, loop, DType::kBool);
}

template <typename T>
void IsNanLoop(const void* x, void* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = static_cast<const T*>(x)[i];
    static_cast<bool*>(y)[i] = value != value;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareIsNan(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const auto loop = ForType<ElementKernel::Loop>(
      Floats(), x.dtype, [](auto t) -> ElementKernel::Loop { return IsNanLoop<typename decltype(t)::type>; });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kBool, x.shape}));
  return std::make_unique<ElementKernel>(loop, x.elements(), SizeOf(x.dtype), 1);
}

// Which infinities count.
template <typename T, bool kPositive, bool kNegative>
void IsInfLoop(const void* x, void* y, int64_t n) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const T value = static_cast<const T*>(x)[i];
    static_cast<bool*>(y)[i] = (kPositive && value == kInfinity) || (kNegative && value == -kInfinity);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareIsInf(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const bool positive = spec.attributes.Int("detect_positive", 1) != 0;
  const bool negative = spec.attributes.Int("detect_negative", 1) != 0;
  const auto loop = ForType<ElementKernel::Loop>(Floats(), x.dtype, [=](auto t) -> ElementKernel::Loop {
    using T = typename decltype(t)::type;
    if (positive) return negative ? IsInfLoop<T, true, true> : IsInfLoop<T, true, false>;
    return negative ? IsInfLoop<T, false, true> : IsInfLoop<T, false, false>;
  });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kBool, x.shape}));
  return std::make_unique<ElementKernel>(loop, x.elements(), SizeOf(x.dtype), 1);
}

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Add("And", "", Prepare<AndOp, Bools>);
  registry.Add("Equal", "", Prepare<EqualOp, NumbersAndBool>);
  registry.Add("Greater", "", Prepare<GreaterOp, Numbers>);
  registry.Add("GreaterOrEqual", "", Prepare<GreaterOrEqualOp, Numbers>);
  registry.Add("IsInf", "", PrepareIsInf);
  registry.Add("IsNaN", "", PrepareIsNan);
  registry.Add("Less", "", Prepare<LessOp, Numbers>);
  registry.Add("LessOrEqual", "", Prepare<LessOrEqualOp, Numbers>);
  registry.Add("Or", "", Prepare<OrOp, Bools>);
  registry.Add("Xor", "", Prepare<XorOp, Bools>);
}

}  // namespace pipec::cpu
