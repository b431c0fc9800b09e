// Element-wise ops of one operand, and the gradients of activations (dY, Y) -> (dX), which the forward result is enough for.
// Results may lie where operands lie. NaN goes through Relu and Sign as in NumPy and PyTorch.
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

#define PIPEC_UNARY(name, expression)             \
  struct name {                                   \
    template <typename T>                         \
    static __device__ __forceinline__ T Of(T x) { \
      return expression;                          \
    }                                             \
  };
PIPEC_UNARY(Neg, -x)
PIPEC_UNARY(Abs, fabs(x))
PIPEC_UNARY(Sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x)
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
PIPEC_UNARY(Sin, sin(x))
PIPEC_UNARY(Cos, cos(x))
PIPEC_UNARY(Identity, x)
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

// `vectors` times 16 bytes, then the elements that fill none.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads, 1) MapOne(const T* x, T* y, int64_t n, int64_t vectors) {
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const Vector<T> in = LoadVector(x + v * kSize);
    Vector<T> out;
#pragma unroll
    for (int i = 0; i < kSize; ++i) out.values[i] = Narrow<T>(Op::Of(Widen(in.values[i])));
    StoreVector(y + v * kSize, out);
  }
  for (int64_t i = vectors * kSize + FirstItem(); i < n; i += ItemStride())
    y[i] = Narrow<T>(Op::Of(Widen(x[i])));
}

template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads) MapTwo(const T* a, const T* b, T* y, int64_t n, int64_t vectors) {
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const Vector<T> in = LoadVector(a + v * kSize), other = LoadVector(b + v * kSize);
    Vector<T> out;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      out.values[i] = Narrow<T>(Op::Of(Widen(in.values[i]), Widen(other.values[i])));
    }
    StoreVector(y + v * kSize, out);
  }
  for (int64_t i = vectors * kSize + FirstItem(); i < n; i += ItemStride()) {
    y[i] = Narrow<T>(Op::Of(Widen(a[i]), Widen(b[i])));
  }
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareOne(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  return ForAllFloats(spec, type.dtype, [n = type.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [n](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      const T* const x = Input<T>(arguments, 0);
      T* const y = Output<T>(arguments, 0);
      const int64_t vectors = Aligned(x) && Aligned(y) ? n / Vector<T>::kSize : 0;
      return Launch(MapOne<Op, T>, BlocksFor(vectors > 0 ? vectors : n), kThreads, stream, x, y, n, vectors);
    });
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradient(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  return ForAllFloats(spec, type.dtype, [n = type.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [n](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      const T *const a = Input<T>(arguments, 0), *const b = Input<T>(arguments, 1);
      T* const y = Output<T>(arguments, 0);
      const int64_t vectors = Aligned(a) && Aligned(b) && Aligned(y) ? n / Vector<T>::kSize : 0;
      return Launch(MapTwo<Op, T>, BlocksFor(vectors > 0 ? vectors : n), kThreads, stream, a, b, y, n,
                    vectors);
    });
  });
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry& registry) {
  registry.Add("Abs", "", PrepareOne<Abs>);
  registry.Add("Ceil", "", PrepareOne<Ceil>);
  registry.Add("Cos", "", PrepareOne<Cos>);
  registry.Add("Erf", "", PrepareOne<Erf>);
  registry.Add("Exp", "", PrepareOne<Exp>);
  registry.Add("Floor", "", PrepareOne<Floor>);
  registry.Add("Identity", "", PrepareOne<Identity>);
  registry.Add("Log", "", PrepareOne<Log>);
  registry.Add("Neg", "", PrepareOne<Neg>);
  registry.Add("Reciprocal", "", PrepareOne<Reciprocal>);
  registry.Add("Relu", "", PrepareOne<Relu>);
  registry.Add("Sigmoid", "", PrepareOne<Sigmoid>);
  registry.Add("Sign", "", PrepareOne<Sign>);
  registry.Add("Sin", "", PrepareOne<Sin>);
  registry.Add("Sqrt", "", PrepareOne<Sqrt>);
  registry.Add("Tanh", "", PrepareOne<Tanh>);
  registry.Add("TanhGrad", kPipecDomain, PrepareGradient<TanhGrad>);
  registry.Add("SigmoidGrad", kPipecDomain, PrepareGradient<SigmoidGrad>);
  registry.Add("ReluGrad", kPipecDomain, PrepareGradient<ReluGrad>);
}

}  // namespace pipec::cuda
