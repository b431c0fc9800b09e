// Element-wise ops of one operand, Gelu, and the gradients of activations (dY, Y) -> (dX), which the forward result
// is enough for but for Gelu's, (dY, X) -> (dX). NaN goes through Relu and Sign as in NumPy and PyTorch.
#include <cmath>
#include <string>
#include <type_traits>

#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/pointwise.cuh"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

#define PIPEC_UNARY(name, expression)             \
  struct name {                                   \
    template <typename T>                         \
    static __device__ __forceinline__ T Of(T x) { \
      return expression;                          \
    }                                             \
  };
PIPEC_UNARY(Neg, std::is_floating_point_v<T> ? -x : WrapSub(T(0), x))
PIPEC_UNARY(Abs, IsNegative(x) || (std::is_floating_point_v<T> && x == T(0)) ? WrapSub(T(0), x) : x)
PIPEC_UNARY(Sign, x > T(0) ? T(1) : IsNegative(x) ? static_cast<T>(-1) : x)
PIPEC_UNARY(Relu, x < T(0) ? T(0) : x)
PIPEC_UNARY(Sqrt, sqrt(x))
PIPEC_UNARY(Exp, exp(x))
PIPEC_UNARY(Log, log(x))
PIPEC_UNARY(Erf, erf(x))
PIPEC_UNARY(Tanh, tanh(x))
PIPEC_UNARY(Sigmoid, T(1) / (T(1) + exp(-x)))
PIPEC_UNARY(Reciprocal, T(1) / x)
PIPEC_UNARY(Floor, floor(x))
PIPEC_UNARY(Ceil, ceil(x))
PIPEC_UNARY(Round, rint(x))
PIPEC_UNARY(Sin, sin(x))
PIPEC_UNARY(Cos, cos(x))
PIPEC_UNARY(Tan, tan(x))
PIPEC_UNARY(Asin, asin(x))
PIPEC_UNARY(Acos, acos(x))
PIPEC_UNARY(Atan, atan(x))
PIPEC_UNARY(Sinh, sinh(x))
PIPEC_UNARY(Cosh, cosh(x))
PIPEC_UNARY(Asinh, asinh(x))
PIPEC_UNARY(Acosh, acosh(x))
PIPEC_UNARY(Atanh, atanh(x))
PIPEC_UNARY(Not, !x)
// gelu(x) = x times the normal distribution's cumulative function; 0.7071... is the root of 1/2.
PIPEC_UNARY(Gelu, x*(T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)))))
// The tanh that stands for erf; 0.7978... is the root of 2 / pi.
PIPEC_UNARY(GeluTanhOf, tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)))
PIPEC_UNARY(GeluTanh, T(0.5) * x * (T(1) + GeluTanhOf::Of(x)))
#undef PIPEC_UNARY

#define PIPEC_GRADIENT(name, expression)                \
  struct name {                                         \
    template <typename T>                               \
    static __device__ __forceinline__ T Of(T dy, T y) { \
      return expression;                                \
    }                                                   \
  };
PIPEC_GRADIENT(TanhGrad, dy*(T(1) - y * y))
PIPEC_GRADIENT(SigmoidGrad, dy*(y*(T(1) - y)))
PIPEC_GRADIENT(ReluGrad, y > T(0) ? dy : T(0))
#undef PIPEC_GRADIENT

// 0.3989... is the root of 1 / (2 pi).
struct GeluGrad {
  template <typename T>
  static __device__ __forceinline__ T Of(T dy, T x) {
    const T cumulative = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
    return dy * (cumulative + x * (T(0.39894228040143267794) * exp(T(-0.5) * x * x)));
  }
};
struct GeluTanhGrad {
  template <typename T>
  static __device__ __forceinline__ T Of(T dy, T x) {
    const T t = GeluTanhOf::Of(x);
    const T inner = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner);
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradient(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  RETURN_IF_ERROR(CheckInput(spec, 1, spec.inputs[0].type));
  return PrepareTwo<Op, Floats>(spec, context);
}

// Whether Gelu is the one of tanh.
absl::StatusOr<bool> IsApproximate(const KernelSpec& spec) {
  const std::string approximate = spec.attributes.String("approximate", "none");
  if (approximate == "tanh" || approximate == "none") return approximate == "tanh";
  return Invalid(spec, "approximate is '" + approximate + "', wanted 'none' or 'tanh'");
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGelu(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const bool approximate, IsApproximate(spec));
  return approximate ? PrepareMap<GeluTanh, Floats>(spec, context) : PrepareMap<Gelu, Floats>(spec, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGeluGrad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const bool approximate, IsApproximate(spec));
  return approximate ? PrepareGradient<GeluTanhGrad>(spec, context)
                     : PrepareGradient<GeluGrad>(spec, context);
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry& registry) {
  registry.Add("Abs", "", PrepareMap<Abs, Numbers>);
  registry.Add("Acos", "", PrepareMap<Acos, Floats>);
  registry.Add("Acosh", "", PrepareMap<Acosh, Floats>);
  registry.Add("Asin", "", PrepareMap<Asin, Floats>);
  registry.Add("Asinh", "", PrepareMap<Asinh, Floats>);
  registry.Add("Atan", "", PrepareMap<Atan, Floats>);
  registry.Add("Atanh", "", PrepareMap<Atanh, Floats>);
  registry.Add("Ceil", "", PrepareMap<Ceil, Floats>);
  registry.Add("Cos", "", PrepareMap<Cos, Floats>);
  registry.Add("Cosh", "", PrepareMap<Cosh, Floats>);
  registry.Add("Erf", "", PrepareMap<Erf, Floats>);
  registry.Add("Exp", "", PrepareMap<Exp, Floats>);
  registry.Add("Floor", "", PrepareMap<Floor, Floats>);
  registry.Add("Gelu", "", PrepareGelu);
  registry.Add("Log", "", PrepareMap<Log, Floats>);
  registry.Add("Neg", "", PrepareMap<Neg, SignedNumbers>);
  registry.Add("Not", "", PrepareMap<Not, Bools>);
  registry.Add("Reciprocal", "", PrepareMap<Reciprocal, Floats>);
  registry.Add("Relu", "", PrepareMap<Relu, SignedNumbers>);
  registry.Add("Round", "", PrepareMap<Round, Floats>);
  registry.Add("Sigmoid", "", PrepareMap<Sigmoid, Floats>);
  registry.Add("Sign", "", PrepareMap<Sign, Numbers>);
  registry.Add("Sin", "", PrepareMap<Sin, Floats>);
  registry.Add("Sinh", "", PrepareMap<Sinh, Floats>);
  registry.Add("Sqrt", "", PrepareMap<Sqrt, Floats>);
  registry.Add("Tan", "", PrepareMap<Tan, Floats>);
  registry.Add("Tanh", "", PrepareMap<Tanh, Floats>);
  registry.Add("GeluGrad", kPipecDomain, PrepareGeluGrad);
  registry.Add("ReluGrad", kPipecDomain, PrepareGradient<ReluGrad>);
  registry.Add("SigmoidGrad", kPipecDomain, PrepareGradient<SigmoidGrad>);
  registry.Add("TanhGrad", kPipecDomain, PrepareGradient<TanhGrad>);
}

}  // namespace pipec::cuda
