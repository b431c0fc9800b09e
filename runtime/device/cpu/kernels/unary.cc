// Element-wise ops of one operand. Follows ONNX; NaN goes through Relu and Sign as in NumPy and PyTorch.
#include <cmath>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

using SignedNumbers = TypeList<float, double, int64_t, int32_t, int16_t, int8_t>;

struct NegOp {
  using Types = SignedNumbers;
  template <typename T>
  static PIPEC_INLINE T Of(T x) {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x));
  }
};

struct AbsOp {
  using Types = Numbers;
  template <typename T>
  static PIPEC_INLINE T Of(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < T{0} ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x)) : x;
  }
};

struct SignOp {
  using Types = Numbers;
  template <typename T>
  static PIPEC_INLINE T Of(T x) {
    return x > T{0} ? T{1} : x < T{0} ? static_cast<T>(-1) : x;  // 0 and NaN are their own sign
  }
};

struct ReluOp {
  using Types = SignedNumbers;
  template <typename T>
  static PIPEC_INLINE T Of(T x) {
    return x < T{0} ? T{0} : x;
  }
};

struct NotOp {
  using Types = Bools;
  static PIPEC_INLINE bool Of(bool x) { return !x; }
};

struct BitwiseNotOp {
  using Types = Integers;
  template <typename T>
  static PIPEC_INLINE T Of(T x) {
    return static_cast<T>(~x);
  }
};

// Ops of float32 and float64 only.
#define PIPEC_FLOAT_OP(name, expression) \
  struct name##Op {                      \
    using Types = Floats;                \
    template <typename T>                \
    static PIPEC_INLINE T Of(T x) {      \
      return expression;                 \
    }                                    \
  };
PIPEC_FLOAT_OP(Sqrt, std::sqrt(x))
PIPEC_FLOAT_OP(Exp, cpu::Exp(x))
PIPEC_FLOAT_OP(Log, cpu::Log(x))
PIPEC_FLOAT_OP(Erf, cpu::Erf(x))
PIPEC_FLOAT_OP(Tanh, cpu::Tanh(x))
PIPEC_FLOAT_OP(Sigmoid, cpu::Sigmoid(x))
PIPEC_FLOAT_OP(Reciprocal, T{1} / x)
PIPEC_FLOAT_OP(Floor, std::floor(x))
PIPEC_FLOAT_OP(Ceil, std::ceil(x))
PIPEC_FLOAT_OP(Sin, std::sin(x))
PIPEC_FLOAT_OP(Cos, std::cos(x))
PIPEC_FLOAT_OP(Tan, std::tan(x))
PIPEC_FLOAT_OP(Asin, std::asin(x))
PIPEC_FLOAT_OP(Acos, std::acos(x))
PIPEC_FLOAT_OP(Atan, std::atan(x))
PIPEC_FLOAT_OP(Sinh, std::sinh(x))
PIPEC_FLOAT_OP(Cosh, std::cosh(x))
PIPEC_FLOAT_OP(Asinh, std::asinh(x))
PIPEC_FLOAT_OP(Acosh, std::acosh(x))
PIPEC_FLOAT_OP(Atanh, std::atanh(x))
PIPEC_FLOAT_OP(Round, std::nearbyint(x))  // halves to even: no thread leaves the default rounding
#undef PIPEC_FLOAT_OP

template <typename Op, typename T>
void Loop(const void* x, void* y, int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
#pragma GCC ivdep  // y may be x itself, which no step of the loop notices
  for (int64_t i = 0; i < n; ++i) to[i] = Op::Of(from[i]);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& type = spec.inputs[0].type;
  const auto loop = ForType<ElementKernel::Loop>(
      typename Op::Types(), type.dtype,
      [](auto t) -> ElementKernel::Loop { return Loop<Op, typename decltype(t)::type>; });
  if (loop == nullptr) return NoKernelFor(spec, type.dtype);
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const int64_t bytes = SizeOf(type.dtype);
  return std::make_unique<ElementKernel>(loop, type.elements(), bytes, bytes);
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry& registry) {
  registry.Add("Abs", "", Prepare<AbsOp>);
  registry.Add("Acos", "", Prepare<AcosOp>);
  registry.Add("Acosh", "", Prepare<AcoshOp>);
  registry.Add("Asin", "", Prepare<AsinOp>);
  registry.Add("Asinh", "", Prepare<AsinhOp>);
  registry.Add("Atan", "", Prepare<AtanOp>);
  registry.Add("Atanh", "", Prepare<AtanhOp>);
  registry.Add("BitwiseNot", "", Prepare<BitwiseNotOp>);
  registry.Add("Ceil", "", Prepare<CeilOp>);
  registry.Add("Cos", "", Prepare<CosOp>);
  registry.Add("Cosh", "", Prepare<CoshOp>);
  registry.Add("Erf", "", Prepare<ErfOp>);
  registry.Add("Exp", "", Prepare<ExpOp>);
  registry.Add("Floor", "", Prepare<FloorOp>);
  registry.Add("Log", "", Prepare<LogOp>);
  registry.Add("Neg", "", Prepare<NegOp>);
  registry.Add("Not", "", Prepare<NotOp>);
  registry.Add("Reciprocal", "", Prepare<ReciprocalOp>);
  registry.Add("Relu", "", Prepare<ReluOp>);
  registry.Add("Round", "", Prepare<RoundOp>);
  registry.Add("Sigmoid", "", Prepare<SigmoidOp>);
  registry.Add("Sign", "", Prepare<SignOp>);
  registry.Add("Sin", "", Prepare<SinOp>);
  registry.Add("Sinh", "", Prepare<SinhOp>);
  registry.Add("Sqrt", "", Prepare<SqrtOp>);
  registry.Add("Tan", "", Prepare<TanOp>);
  registry.Add("Tanh", "", Prepare<TanhOp>);
}

}  // namespace pipec::cpu
