// Add, Sub, Mul, Div of two operands of floats, broadcast as NumPy does.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/broadcast.h"

namespace pipec::cuda {
namespace {

#define PIPEC_BINARY(name, expression)                 \
  struct name {                                        \
    template <typename T>                              \
    static __device__ __forceinline__ T Of(T a, T b) { \
      return expression;                               \
    }                                                  \
  };
PIPEC_BINARY(Add, a + b)
PIPEC_BINARY(Sub, a - b)
PIPEC_BINARY(Mul, a* b)
PIPEC_BINARY(Div, a / b)
#undef PIPEC_BINARY

// Broadcast in 32 bits, which a GPU divides faster by.
struct Walk {
  int rank;
  uint32_t dims[kMaxRank];
  uint32_t a[kMaxRank], b[kMaxRank];  // strides; of the last axis 0 or 1
};

struct Places {
  uint32_t a, b;
};
__device__ __forceinline__ Places At(const Walk& walk, uint32_t i) {
  Places places{0, 0};
  for (int axis = walk.rank - 1; axis > 0; --axis) {
    const uint32_t rest = i / walk.dims[axis], at = i - rest * walk.dims[axis];
    places.a += at * walk.a[axis];
    places.b += at * walk.b[axis];
    i = rest;
  }
  places.a += i * walk.a[0];
  places.b += i * walk.b[0];
  return places;
}

// 16 bytes from `at` on, or one element in all places.
template <typename T>
__device__ __forceinline__ Vector<T> LoadRun(const T* at, uint32_t step) {
  if (step != 0) return LoadVector(at);
  Vector<T> vector;
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i) vector.values[i] = *at;
  return vector;
}

// `vectors` times 16 bytes of the result, none of which leaves its last axis; then the elements that fill none.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    Combine(const T* a, const T* b, T* y, const Walk walk, uint32_t n, uint32_t vectors) {
  constexpr uint32_t kSize = Vector<T>::kSize;
  const int last = walk.rank - 1;
  const uint32_t step_a = walk.a[last], step_b = walk.b[last];
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const Places places = At(walk, static_cast<uint32_t>(v) * kSize);
    const Vector<T> in = LoadRun(a + places.a, step_a), other = LoadRun(b + places.b, step_b);
    Vector<T> out;
#pragma unroll
    for (int i = 0; i < static_cast<int>(kSize); ++i) {
      out.values[i] = Narrow<T>(Op::Of(Widen(in.values[i]), Widen(other.values[i])));
    }
    StoreVector(y + v * kSize, out);
  }
  for (int64_t i = int64_t{vectors} * kSize + FirstItem(); i < n; i += ItemStride()) {
    const Places places = At(walk, static_cast<uint32_t>(i));
    y[i] = Narrow<T>(Op::Of(Widen(a[places.a]), Widen(b[places.b])));
  }
}

// How many vectors of the result may be taken at once: a row of the last axis must begin at a multiple of 16 bytes in every
// operand that moves along it.
template <typename T>
uint32_t VectorsOf(const Walk& walk, uint32_t n, const T* a, const T* b, const T* y) {
  constexpr uint32_t kSize = Vector<T>::kSize;
  if (!Aligned(y)) return 0;
  const int last = walk.rank - 1;
  if (last > 0 && walk.dims[last] % kSize != 0) return 0;
  for (const auto& [address, strides] : {std::pair(a, &walk.a[0]), std::pair(b, &walk.b[0])}) {
    if (strides[last] == 0) continue;
    if (!Aligned(address)) return 0;
    for (int axis = 0; axis < last; ++axis) {
      if (strides[axis] % kSize != 0) return 0;
    }
  }
  return n / kSize;
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType &a = spec.inputs[0].type, &b = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInputType(spec, 1, a.dtype));
  absl::StatusOr<Shape> shape = BroadcastShape({a.shape, b.shape});
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {a.dtype, *shape}));
  const auto broadcast = Broadcast<2>::Make({a.shape, b.shape}, *shape);
  if (broadcast.elements > std::numeric_limits<uint32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): the result has ",
                                                 broadcast.elements,
                                                 " elements, at most 2^32 - 1 are taken"));
  }
  Walk walk{.rank = broadcast.rank};
  for (int axis = 0; axis < walk.rank; ++axis) {
    walk.dims[axis] = static_cast<uint32_t>(broadcast.dims[axis]);
    walk.a[axis] = static_cast<uint32_t>(broadcast.strides[0][axis]);
    walk.b[axis] = static_cast<uint32_t>(broadcast.strides[1][axis]);
  }
  return ForAllFloats(spec, a.dtype, [walk, n = static_cast<uint32_t>(broadcast.elements)](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [walk, n](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      const T *const a = Input<T>(arguments, 0), *const b = Input<T>(arguments, 1);
      T* const y = Output<T>(arguments, 0);
      const uint32_t vectors = VectorsOf(walk, n, a, b, y);
      return Launch(Combine<Op, T>, BlocksFor(vectors > 0 ? vectors : n), kThreads, stream, a, b, y, walk, n,
                    vectors);
    });
  });
}

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  registry.Add("Add", "", Prepare<Add>);
  registry.Add("Div", "", Prepare<Div>);
  registry.Add("Mul", "", Prepare<Mul>);
  registry.Add("Sub", "", Prepare<Sub>);
}

}  // namespace pipec::cuda
