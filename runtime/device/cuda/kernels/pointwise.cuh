// Kernels that make each element of a result from the elements of operands at its place: one table of functors an
// op family, one launcher here. A functor is a struct with
//   template <typename T> static __device__ __forceinline__ R Of(T x)        or Of(T a, T b)
// of elements in the type they are computed in; R is the result's. Results may lie where operands of their size lie.
#pragma once

#include <array>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/broadcast.h"

namespace pipec::cuda {

// `vectors` times as many elements as fill 16 bytes of the wider type, then the elements that fill none.
template <typename Op, typename X, typename Y>
__global__ void __launch_bounds__(kThreads, 1) MapOne(const X* x, Y* y, int64_t n, int64_t vectors) {
  constexpr int kSize = kTogether<X, Y>;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const Vector<X, kSize> in = LoadElements<kSize>(x + v * kSize);
    Vector<Y, kSize> out;
#pragma unroll
    for (int i = 0; i < kSize; ++i) out.values[i] = Narrow<Y>(Op::Of(Widen(in.values[i])));
    StoreVector(y + v * kSize, out);
  }
  for (int64_t i = vectors * kSize + FirstItem(); i < n; i += ItemStride())
    y[i] = Narrow<Y>(Op::Of(Widen(x[i])));
}

// y = Op(x), n elements.
template <typename Op, typename X, typename Y>
absl::Status LaunchMap(cudaStream_t stream, const X* x, Y* y, int64_t n) {
  if (n == 0) return absl::OkStatus();
  constexpr int kSize = kTogether<X, Y>;
  const bool whole = Aligned(x, sizeof(X) * kSize) && Aligned(y, sizeof(Y) * kSize);
  const int64_t vectors = whole ? n / kSize : 0;
  return Launch(MapOne<Op, X, Y>, BlocksFor(vectors > 0 ? vectors : n), kThreads, stream, x, y, n, vectors);
}
template <typename Op, typename X, typename Y>
std::unique_ptr<Kernel> MapKernel(int64_t n) {
  return MakeKernel(0, [n](cudaStream_t stream, const KernelArguments& arguments) {
    return LaunchMap<Op>(stream, Input<X>(arguments, 0), Output<Y>(arguments, 0), n);
  });
}

// An op (x) -> (y) over the types of a list; the result has the operand's type, or is bool.
template <typename Op, typename Types, bool kToBool = false>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareMap(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {kToBool ? DType::kBool : x.dtype, x.shape}));
  return ForTypes(Types(), spec, x.dtype, [n = x.elements()](auto tag) {
    using X = typename decltype(tag)::type;
    return MapKernel<Op, X, std::conditional_t<kToBool, bool, X>>(n);
  });
}

// Broadcast in 32 bits, which a GPU divides faster by.
template <int kInputs>
struct Walk {
  int rank;
  uint32_t elements;
  uint32_t dims[kMaxRank];
  uint32_t strides[kInputs][kMaxRank];  // of the last axis 0 or 1

  // Unimplemented if the result is too large; `shape` is what the inputs broadcast to.
  static absl::StatusOr<Walk> Of(const KernelSpec& spec, const std::array<Shape, kInputs>& inputs,
                                 const Shape& shape) {
    const auto broadcast = Broadcast<kInputs>::Make(inputs, shape);
    if (broadcast.elements > std::numeric_limits<uint32_t>::max()) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): the result has ",
                                                   broadcast.elements,
                                                   " elements, at most 2^32 - 1 are taken"));
    }
    Walk walk{.rank = broadcast.rank, .elements = static_cast<uint32_t>(broadcast.elements)};
    for (int axis = 0; axis < walk.rank; ++axis) {
      walk.dims[axis] = static_cast<uint32_t>(broadcast.dims[axis]);
      for (int k = 0; k < kInputs; ++k)
        walk.strides[k][axis] = static_cast<uint32_t>(broadcast.strides[k][axis]);
    }
    return walk;
  }

  // The places of element i of the result in the inputs.
  struct Places {
    uint32_t at[kInputs];
  };
  __device__ __forceinline__ Places At(uint32_t i) const {
    Places places{};
    for (int axis = rank - 1; axis > 0; --axis) {
      const uint32_t rest = i / dims[axis], at = i - rest * dims[axis];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) places.at[k] += at * strides[k][axis];
      i = rest;
    }
#pragma unroll
    for (int k = 0; k < kInputs; ++k) places.at[k] += i * strides[k][0];
    return places;
  }

  // Whether `size` elements of the result may be taken at once, wherever they begin at a multiple of that: a row of
  // the last axis must begin at such a multiple in every operand that moves along it. The addresses are aligned to
  // `size` elements.
  bool Together(uint32_t size, const std::array<bool, kInputs>& aligned) const {
    const int last = rank - 1;
    if (last > 0 && dims[last] % size != 0) return false;
    for (int k = 0; k < kInputs; ++k) {
      if (strides[k][last] == 0) continue;
      if (!aligned[k]) return false;
      for (int axis = 0; axis < last; ++axis) {
        if (strides[k][axis] % size != 0) return false;
      }
    }
    return true;
  }
};

// kSize elements from `at` on, or one element in all places.
template <int kSize, typename T>
__device__ __forceinline__ Vector<T, kSize> LoadRun(const T* at, uint32_t step) {
  if (step != 0) return LoadElements<kSize>(at);
  Vector<T, kSize> vector;
#pragma unroll
  for (int i = 0; i < kSize; ++i) vector.values[i] = *at;
  return vector;
}

// As MapOne; none of what is taken at once leaves the last axis.
template <typename Op, typename A, typename B, typename R>
__global__ void __launch_bounds__(kThreads, 1)
    MapTwo(const A* a, const B* b, R* y, const Walk<2> walk, uint32_t vectors) {
  constexpr uint32_t kSize = kTogether<A, B, R>;
  const int last = walk.rank - 1;
  const uint32_t step_a = walk.strides[0][last], step_b = walk.strides[1][last];
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const auto places = walk.At(static_cast<uint32_t>(v) * kSize);
    const Vector<A, kSize> in = LoadRun<kSize>(a + places.at[0], step_a);
    const Vector<B, kSize> other = LoadRun<kSize>(b + places.at[1], step_b);
    Vector<R, kSize> out;
#pragma unroll
    for (int i = 0; i < static_cast<int>(kSize); ++i) {
      out.values[i] = Narrow<R>(Op::Of(Widen(in.values[i]), Widen(other.values[i])));
    }
    StoreVector(y + v * kSize, out);
  }
  for (int64_t i = int64_t{vectors} * kSize + FirstItem(); i < walk.elements; i += ItemStride()) {
    const auto places = walk.At(static_cast<uint32_t>(i));
    y[i] = Narrow<R>(Op::Of(Widen(a[places.at[0]]), Widen(b[places.at[1]])));
  }
}

// y = Op(a, b).
template <typename Op, typename A, typename B, typename R>
absl::Status LaunchTwo(cudaStream_t stream, const Walk<2>& walk, const void* a, const void* b, void* y) {
  if (walk.elements == 0) return absl::OkStatus();
  constexpr uint32_t kSize = kTogether<A, B, R>;
  const bool whole = Aligned(y, sizeof(R) * kSize) &&
                     walk.Together(kSize, {Aligned(a, sizeof(A) * kSize), Aligned(b, sizeof(B) * kSize)});
  const uint32_t vectors = whole ? walk.elements / kSize : 0;
  return Launch(MapTwo<Op, A, B, R>, BlocksFor(vectors > 0 ? vectors : walk.elements), kThreads, stream,
                static_cast<const A*>(a), static_cast<const B*>(b), static_cast<R*>(y), walk, vectors);
}

// Operands 0 and 1 broadcast to result 0, which has this element type.
inline absl::StatusOr<Walk<2>> WalkOfTwo(const KernelSpec& spec, DType result) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const Shape &a = spec.inputs[0].type.shape, &b = spec.inputs[1].type.shape;
  absl::StatusOr<Shape> shape = BroadcastShape({a, b});
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {result, *shape}));
  return Walk<2>::Of(spec, {a, b}, *shape);
}

template <typename Op, typename A, typename B, typename R>
std::unique_ptr<Kernel> TwoKernel(const Walk<2>& walk) {
  return MakeKernel(0, [walk](cudaStream_t stream, const KernelArguments& arguments) {
    return LaunchTwo<Op, A, B, R>(stream, walk, arguments.inputs[0], arguments.inputs[1],
                                  arguments.outputs[0]);
  });
}

// An op (a, b) -> (y) of two operands of one type of the list; the result has it too, or is bool.
template <typename Op, typename Types, bool kToBool = false>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareTwo(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dtype));
  ASSIGN_OR_RETURN(const Walk<2> walk, WalkOfTwo(spec, kToBool ? DType::kBool : dtype));
  return ForTypes(Types(), spec, dtype, [&walk](auto tag) {
    using T = typename decltype(tag)::type;
    return TwoKernel<Op, T, T, std::conditional_t<kToBool, bool, T>>(walk);
  });
}

}  // namespace pipec::cuda
