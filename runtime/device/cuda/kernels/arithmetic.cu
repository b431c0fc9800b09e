// Add, Sub, Mul, Div, Mod and Pow of two operands; Max, Min, Sum and Mean of any number; all broadcast as NumPy
// does. Integers wrap around, Div truncates towards zero, a zero divisor of an integer is an error of the data.
#include <cmath>

#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/pointwise.cuh"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

#define PIPEC_BINARY(name, expression)                 \
  struct name {                                        \
    template <typename T>                              \
    static __device__ __forceinline__ T Of(T a, T b) { \
      return expression;                               \
    }                                                  \
  };
PIPEC_BINARY(Add, WrapAdd(a, b))
PIPEC_BINARY(Sub, WrapSub(a, b))
PIPEC_BINARY(Mul, WrapMul(a, b))
// NaN wins, as in NumPy.
PIPEC_BINARY(Max, a > b || a != a ? a : b)
PIPEC_BINARY(Min, a < b || a != a ? a : b)
#undef PIPEC_BINARY

// Integer divisors of 0 have been noted before; they give 0. The least integer over -1 does not fit: it wraps around.
struct Div {
  template <typename T>
  static __device__ __forceinline__ T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return WrapSub(T(0), a);
    }
    return static_cast<T>(a / b);
  }
};

// The sign of the dividend, as C's fmod.
struct Fmod {
  template <typename T>
  static __device__ __forceinline__ T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return fmod(a, b);
    } else {
      if (b == T(0) || (std::is_signed_v<T> && b == static_cast<T>(-1))) return T(0);
      return static_cast<T>(a % b);
    }
  }
};

// The sign of the divisor, as Python's %.
struct Mod {
  template <typename T>
  static __device__ __forceinline__ T Of(T a, T b) {
    const T rest = Fmod::Of(a, b);
    return rest != T(0) && IsNegative(rest) != IsNegative(b) ? static_cast<T>(rest + b) : rest;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) FindZero(const T* b, int64_t n, const FaultSite fault) {
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) {
    if (b[i] == T(0)) LeaveNote(fault, 0, i);
  }
}

// Integers are looked at before they divide.
template <typename Op, typename Types>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareDivision(const KernelSpec& spec, CudaContext& context) {
  if (spec.inputs.size() != 2 || IsFloat(spec.inputs[0].type.dtype)) {
    return PrepareTwo<Op, Types>(spec, context);
  }
  const TensorType& b = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInputType(spec, 1, spec.inputs[0].type.dtype));
  ASSIGN_OR_RETURN(const Walk<2> walk, WalkOfTwo(spec, b.dtype));
  const FaultSite fault = context.AddFaultSite(spec, "element of input 1", "a divisor of integers");
  return ForTypes(Integers(), spec, b.dtype, [walk, fault, n = b.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const T* const b = Input<T>(arguments, 1);
      if (n > 0) RETURN_IF_ERROR(Launch(FindZero<T>, BlocksFor(n), kThreads, stream, b, n, fault));
      return LaunchTwo<Op, T, T, T>(stream, walk, arguments.inputs[0], b, arguments.outputs[0]);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMod(const KernelSpec& spec, CudaContext& context) {
  if (spec.attributes.Int("fmod", 0) != 0) return PrepareDivision<Fmod, Numbers>(spec, context);
  if (!spec.inputs.empty() && IsFloat(spec.inputs[0].type.dtype)) {
    return Invalid(spec, "floats need the attribute fmod=1");
  }
  return PrepareDivision<Mod, Integers>(spec, context);
}

// By squaring, modulo 2^bits. A negative exponent truncates 1 / base^|exponent| towards zero; 0 has no such power: 0.
template <typename T, typename E>
__device__ __forceinline__ T IntegerPower(T base, E exponent) {
  if (exponent < 0) {
    return base == 1 ? T(1) : base == static_cast<T>(-1) ? static_cast<T>(exponent % 2 != 0 ? -1 : 1) : T(0);
  }
  Wrapping<T> result = 1, square = static_cast<Wrapping<T>>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1, square *= square) {
    if (rest & 1) result *= square;
  }
  return static_cast<T>(result);
}

struct Pow {
  template <typename T, typename E>
  static __device__ __forceinline__ T Of(T base, E exponent) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
      return IntegerPower(base, exponent);
    } else if constexpr (std::is_integral_v<T>) {
      return Saturated<T>(pow(static_cast<double>(base), static_cast<double>(exponent)));
    } else if constexpr (std::is_same_v<T, float> && std::is_same_v<E, float>) {
      return pow(base, exponent);
    } else {
      return static_cast<T>(pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
  }
};
// What variances are written with.
struct Square {
  template <typename T>
  static __device__ __forceinline__ T Of(T x) {
    return x * x;
  }
};

bool IsTwo(const KernelOperand& operand) {
  if (operand.constant == nullptr || operand.type.elements() != 1) return false;
  switch (operand.type.dtype) {
    case DType::kFloat32:
      return *reinterpret_cast<const float*>(operand.constant) == 2;
    case DType::kFloat64:
      return *reinterpret_cast<const double*>(operand.constant) == 2;
    case DType::kInt64:
      return *reinterpret_cast<const int64_t*>(operand.constant) == 2;
    case DType::kInt32:
      return *reinterpret_cast<const int32_t*>(operand.constant) == 2;
    case DType::kFloat16:
      return *reinterpret_cast<const uint16_t*>(operand.constant) == 0x4000;
    case DType::kBFloat16:
      return *reinterpret_cast<const uint16_t*>(operand.constant) == 0x4000;
    default:
      return false;
  }
}

// The result has the base's type. Exponents are of the same type, or float32, int64 or int32.
absl::StatusOr<std::unique_ptr<Kernel>> PreparePow(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType& base = spec.inputs[0].type;
  const DType exponent = spec.inputs[1].type.dtype;
  ASSIGN_OR_RETURN(const Walk<2> walk, WalkOfTwo(spec, base.dtype));
  if (IsFloat(base.dtype) && IsTwo(spec.inputs[1]) && base == spec.outputs[0].type) {
    return ForTypes(Floats(), spec, base.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return MapKernel<Square, T, T>(walk.elements);
    });
  }
  using Bases = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t>;
  return ForTypes(Bases(), spec, base.dtype, [&](auto tag) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    using T = typename decltype(tag)::type;
    if (exponent == base.dtype) return TwoKernel<Pow, T, T, T>(walk);
    return ForTypes(TypeList<float, int64_t, int32_t>(), spec, exponent,
                    [&](auto e) { return TwoKernel<Pow, T, typename decltype(e)::type, T>(walk); });
  });
}

struct Identity {
  template <typename T>
  static __device__ __forceinline__ T Of(T x) {
    return x;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) Divide(const Compute<T>* sum, int64_t n, Compute<T> by, T* y) {
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) y[i] = Narrow<T>(sum[i] / by);
}

// The first operand meets the second, the result the third, and so on; what is between lies in the workspace, so
// that the result may lie where any operand does, and is rounded once.
template <typename Op, typename Types, bool kMean = false>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareVariadic(const KernelSpec& spec, CudaContext& context) {
  const int n = static_cast<int>(spec.inputs.size());
  if (n == 2 && !kMean) return PrepareTwo<Op, Types>(spec, context);
  RETURN_IF_ERROR(CheckOperands(spec, {std::max(n, 1), std::max(n, 1)}));
  const DType dtype = spec.inputs[0].type.dtype;
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    RETURN_IF_ERROR(CheckInputType(spec, k, dtype));
    shapes.push_back(spec.inputs[k].type.shape);
  }
  absl::StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, *shape}));
  const int64_t elements = NumElements(*shape);
  if (n == 1) {
    return ForTypes(Types(), spec, dtype, [elements](auto tag) {
      using T = typename decltype(tag)::type;
      return MapKernel<Identity, T, T>(elements);
    });
  }
  // walks[k]: what operands 0 to k make, and operand k + 1. The first result in full, so that the others are in place.
  std::vector<Walk<2>> walks;
  for (int k = 1; k < n; ++k) {
    ASSIGN_OR_RETURN(const Walk<2> walk, Walk<2>::Of(spec, {k == 1 ? shapes[0] : *shape, shapes[k]}, *shape));
    walks.push_back(walk);
  }
  return ForTypes(Types(), spec, dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const int64_t workspace = elements * static_cast<int64_t>(sizeof(C));
    return MakeKernel(workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (elements == 0) return absl::OkStatus();
      void* const total = arguments.workspace;
      T* const y = Output<T>(arguments, 0);
      const int last = static_cast<int>(walks.size()) - 1;
      for (int k = 0; k <= last; ++k) {
        const void* const x = arguments.inputs[k + 1];
        if (k == 0) {
          RETURN_IF_ERROR((LaunchTwo<Op, T, T, C>(stream, walks[k], arguments.inputs[0], x, total)));
        } else if (k == last && !kMean) {
          RETURN_IF_ERROR((LaunchTwo<Op, C, T, T>(stream, walks[k], total, x, y)));
        } else {
          RETURN_IF_ERROR((LaunchTwo<Op, C, T, C>(stream, walks[k], total, x, total)));
        }
      }
      if constexpr (kMean) {
        return Launch(Divide<T>, BlocksFor(elements), kThreads, stream, static_cast<const C*>(total),
                      elements, static_cast<C>(last + 2), y);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  registry.Add("Add", "", PrepareTwo<Add, Numbers>);
  registry.Add("Div", "", PrepareDivision<Div, Numbers>);
  registry.Add("Max", "", PrepareVariadic<Max, Numbers>);
  registry.Add("Mean", "", PrepareVariadic<Add, Floats, true>);
  registry.Add("Min", "", PrepareVariadic<Min, Numbers>);
  registry.Add("Mod", "", PrepareMod);
  registry.Add("Mul", "", PrepareTwo<Mul, Numbers>);
  registry.Add("Pow", "", PreparePow);
  registry.Add("Sub", "", PrepareTwo<Sub, Numbers>);
  registry.Add("Sum", "", PrepareVariadic<Add, Floats>);
}

}  // namespace pipec::cuda
