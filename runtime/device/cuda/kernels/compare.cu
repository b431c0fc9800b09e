// Comparisons, logic, IsNaN and IsInf, whose results are bool; Where.
#include <cmath>

#include "runtime/device/cuda/kernels/pointwise.cuh"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

#define PIPEC_BOOL(name, expression)                      \
  struct name {                                           \
    template <typename T>                                 \
    static __device__ __forceinline__ bool Of(T a, T b) { \
      return expression;                                  \
    }                                                     \
  };
PIPEC_BOOL(Equal, a == b)
PIPEC_BOOL(Less, a < b)
PIPEC_BOOL(LessOrEqual, a <= b)
PIPEC_BOOL(Greater, a > b)
PIPEC_BOOL(GreaterOrEqual, a >= b)
PIPEC_BOOL(And, a&& b)
PIPEC_BOOL(Or, a || b)
PIPEC_BOOL(Xor, a != b)
#undef PIPEC_BOOL

struct IsNan {
  template <typename T>
  static __device__ __forceinline__ bool Of(T x) {
    return x != x;
  }
};
// Which infinities count.
template <bool kPositive, bool kNegative>
struct IsInfinite {
  template <typename T>
  static __device__ __forceinline__ bool Of(T x) {
    return (kPositive && x == static_cast<T>(INFINITY)) || (kNegative && x == static_cast<T>(-INFINITY));
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareIsInf(const KernelSpec& spec, CudaContext& context) {
  const bool positive = spec.attributes.Int("detect_positive", 1) != 0;
  const bool negative = spec.attributes.Int("detect_negative", 1) != 0;
  const auto prepare = positive ? (negative ? PrepareMap<IsInfinite<true, true>, Floats, true>
                                            : PrepareMap<IsInfinite<true, false>, Floats, true>)
                                : (negative ? PrepareMap<IsInfinite<false, true>, Floats, true>
                                            : PrepareMap<IsInfinite<false, false>, Floats, true>);
  return prepare(spec, context);
}

// As MapTwo, of the condition and two operands.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Select(const bool* condition, const T* x, const T* y, T* out, const Walk<3> walk, uint32_t vectors) {
  constexpr uint32_t kSize = kTogether<T>;
  const int last = walk.rank - 1;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const auto places = walk.At(static_cast<uint32_t>(v) * kSize);
    const Vector<bool, kSize> which = LoadRun<kSize>(condition + places.at[0], walk.strides[0][last]);
    const Vector<T> if_true = LoadRun<kSize>(x + places.at[1], walk.strides[1][last]);
    Vector<T> result = LoadRun<kSize>(y + places.at[2], walk.strides[2][last]);
#pragma unroll
    for (int i = 0; i < static_cast<int>(kSize); ++i) {
      if (which.values[i]) result.values[i] = if_true.values[i];
    }
    StoreVector(out + v * kSize, result);
  }
  for (int64_t i = int64_t{vectors} * kSize + FirstItem(); i < walk.elements; i += ItemStride()) {
    const auto places = walk.At(static_cast<uint32_t>(i));
    out[i] = condition[places.at[0]] ? x[places.at[1]] : y[places.at[2]];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWhere(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  RETURN_IF_ERROR(CheckInputType(spec, 0, DType::kBool));
  const DType dtype = spec.inputs[1].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 2, dtype));
  const std::array<Shape, 3> shapes = {spec.inputs[0].type.shape, spec.inputs[1].type.shape,
                                       spec.inputs[2].type.shape};
  absl::StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, *shape}));
  ASSIGN_OR_RETURN(const Walk<3> walk, Walk<3>::Of(spec, shapes, *shape));
  return ForSize(spec, dtype, [walk](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [walk](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (walk.elements == 0) return absl::OkStatus();
      const bool* const condition = Input<bool>(arguments, 0);
      const T *const x = Input<T>(arguments, 1), *const y = Input<T>(arguments, 2);
      T* const out = Output<T>(arguments, 0);
      const bool whole = Aligned(out) && walk.Together(kTogether<T>, {Aligned(condition, kTogether<T>),
                                                                      Aligned(x), Aligned(y)});
      const uint32_t vectors = whole ? walk.elements / kTogether<T> : 0;
      return Launch(Select<T>, BlocksFor(vectors > 0 ? vectors : walk.elements), kThreads, stream, condition,
                    x, y, out, walk, vectors);
    });
  });
}

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Add("And", "", PrepareTwo<And, Bools, true>);
  registry.Add("Equal", "", PrepareTwo<Equal, NumbersAndBool, true>);
  registry.Add("Greater", "", PrepareTwo<Greater, Numbers, true>);
  registry.Add("GreaterOrEqual", "", PrepareTwo<GreaterOrEqual, Numbers, true>);
  registry.Add("IsInf", "", PrepareIsInf);
  registry.Add("IsNaN", "", PrepareMap<IsNan, Floats, true>);
  registry.Add("Less", "", PrepareTwo<Less, Numbers, true>);
  registry.Add("LessOrEqual", "", PrepareTwo<LessOrEqual, Numbers, true>);
  registry.Add("Or", "", PrepareTwo<Or, Bools, true>);
  registry.Add("Where", "", PrepareWhere);
  registry.Add("Xor", "", PrepareTwo<Xor, Bools, true>);
}

}  // namespace pipec::cuda
