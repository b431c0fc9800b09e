// ArgMax, ArgMin, Hardmax, TopK, CumSum and CumProd: rows along an axis, element i of which lies i * inner apart.
// Of a row a block finds the first (or last) of the greatest by pairs of value and place, whose order is total; NaN
// is the greatest.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/sorted_top_k.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {
namespace {

using Types = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t>;

dim3 RowBlocks(const AxisView& view) {
  return dim3(static_cast<unsigned>(std::clamp<int64_t>(view.outer * view.inner, 1, 1 << 16)));
}
__device__ __forceinline__ int64_t RowAt(const AxisView& view, int64_t row) {
  return row / view.inner * view.length * view.inner + row % view.inner;
}

// Whether value a at place i comes before b at place j.
struct Order {
  bool largest, last, nan_first;
  template <typename T>
  __device__ __forceinline__ bool Before(T a, int64_t i, T b, int64_t j) const {
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan != b_nan) return a_nan == nan_first;
    if (a == b || a_nan) return last && !a_nan ? i > j : i < j;
    return largest ? a > b : a < b;
  }
};

// The place of the first element of a row by `order` that comes after `floor` (all do if there is none); -1 if
// there is none. The whole block comes here.
template <typename T>
__device__ int64_t FirstOf(const T* row, const AxisView& view, const Order& order, int64_t floor) {
  __shared__ int64_t best[kThreads];
  int64_t own = -1;
  for (int64_t i = threadIdx.x; i < view.length; i += kThreads) {
    const Compute<T> value = Widen(row[i * view.inner]);
    if (floor >= 0 && !order.Before(Widen(row[floor * view.inner]), floor, value, i)) continue;
    if (own < 0 || order.Before(value, i, Widen(row[own * view.inner]), own)) own = i;
  }
  __syncthreads();
  best[threadIdx.x] = own;
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) {
      const int64_t other = best[threadIdx.x + width], mine = best[threadIdx.x];
      if (other >= 0 && (mine < 0 || order.Before(Widen(row[other * view.inner]), other,
                                                  Widen(row[mine * view.inner]), mine))) {
        best[threadIdx.x] = other;
      }
    }
  }
  __syncthreads();
  return best[0];
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    FindExtreme(const T* x, int64_t* places, const AxisView view, const Order order) {
  for (int64_t row = blockIdx.x; row < view.outer * view.inner; row += gridDim.x) {
    const int64_t place = FirstOf(x + RowAt(view, row), view, order, -1);
    if (threadIdx.x == 0) places[row] = place;
  }
}

template <bool kMax>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareArg(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 0), static_cast<int>(x.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, *axis));
  if (view.length == 0)
    return Invalid(spec, absl::StrCat("axis ", *axis, " of ", ToString(x.shape), " has no element"));
  Shape shape = x.shape;
  shape[*axis] = 1;
  if (spec.attributes.Int("keepdims", 1) == 0) shape.erase(shape.begin() + *axis);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt64, shape}));
  const Order order{kMax, spec.attributes.Int("select_last_index", 0) != 0, true};
  return ForTypes(Types(), spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (view.outer * view.inner == 0) return absl::OkStatus();
      return Launch(FindExtreme<T>, RowBlocks(view), kThreads, stream, Input<T>(arguments, 0),
                    Output<int64_t>(arguments, 0), view, order);
    });
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Select(const T* x, const int64_t* asked, T* values, int64_t* places, const AxisView view, int64_t k,
           const Order order, const FaultSite fault) {
  if (*asked != k && FirstItem() == 0) LeaveNote(fault, *asked, 0);
  for (int64_t row = blockIdx.x; row < view.outer * view.inner; row += gridDim.x) {
    const T* const from = x + RowAt(view, row);
    const int64_t to = row / view.inner * k * view.inner + row % view.inner;
    int64_t place = -1;
    for (int64_t i = 0; i < k; ++i) {
      place = FirstOf(from, view, order, place);
      if (threadIdx.x == 0) {
        values[to + i * view.inner] = from[place * view.inner];
        places[to + i * view.inner] = place;
      }
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareTopK(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 2, 2}));
  const TensorType& x = spec.inputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", -1), static_cast<int>(x.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(x.shape, *axis));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kInt64, 1));
  const Shape& y = spec.outputs[0].type.shape;
  if (y.size() != x.shape.size()) return Invalid(spec, absl::StrCat("output 0 has rank ", y.size()));
  const int64_t k = y[*axis];
  if (k > view.length)
    return Invalid(spec, absl::StrCat("K is ", k, ", the axis has ", view.length, " elements"));
  Shape shape = x.shape;
  shape[*axis] = k;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, shape}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, shape}));
  const bool largest = spec.attributes.Int("largest", 1) != 0;
  const Order order{largest, false, largest};
  const FaultSite fault =
      context.AddFaultSite(spec, "K", absl::StrCat("what the results have room for, ", k));
  if (const TopKOrder sorted{view, k, largest}; IsSorted(sorted, x.dtype))
    return MakeSortedTopK(spec, sorted, fault);
  return ForTypes(Types(), spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      return Launch(Select<T>, RowBlocks(view), kThreads, stream, Input<T>(arguments, 0),
                    Input<int64_t>(arguments, 1), Output<T>(arguments, 0), Output<int64_t>(arguments, 1),
                    view, k, order, fault);
    });
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) MarkExtreme(const T* x, T* y, const AxisView view) {
  for (int64_t row = blockIdx.x; row < view.outer * view.inner; row += gridDim.x) {
    const int64_t at = RowAt(view, row), place = FirstOf(x + at, view, Order{true, false, false}, -1);
    for (int64_t i = threadIdx.x; i < view.length; i += kThreads)
      y[at + i * view.inner] = Narrow<T>(Compute<T>(i == place ? 1 : 0));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareHardmax(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  absl::StatusOr<AxisView> view = ViewAlong(x.shape, spec.attributes.Int("axis", -1));
  if (!view.ok()) return Invalid(spec, view.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return ForAllFloats(spec, x.dtype, [view = *view](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [view](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (view.outer * view.length * view.inner == 0) return absl::OkStatus();
      return Launch(MarkExtreme<T>, RowBlocks(view), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), view);
    });
  });
}

// A thread a row, in the row's order.
template <bool kProduct, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Accumulated(const T* x, T* y, const AxisView view, bool exclusive, bool reverse) {
  using C = Compute<T>;
  for (int64_t row = FirstItem(); row < view.outer * view.inner; row += ItemStride()) {
    const int64_t first = RowAt(view, row);
    C total = static_cast<C>(kProduct ? 1 : 0);
    for (int64_t k = 0; k < view.length; ++k) {
      const int64_t place = first + (reverse ? view.length - 1 - k : k) * view.inner;
      const C value = Widen(x[place]), with = kProduct ? WrapMul(total, value) : WrapAdd(total, value);
      y[place] = Narrow<T>(exclusive ? total : with);
      total = with;
    }
  }
}

template <bool kProduct, typename C>
__device__ __forceinline__ C With(C a, C b) {
  return kProduct ? WrapMul(a, b) : WrapAdd(a, b);
}

// A block a row, kThreads elements at a time: the same order in every run, which CUB's scan of a whole device does
// not keep.
template <bool kProduct, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    AccumulatedByBlocks(const T* x, T* y, const AxisView view, bool exclusive, bool reverse) {
  using C = Compute<T>;
  __shared__ C ends[kThreads / 32];  // of what each warp's elements give
  const C none = static_cast<C>(kProduct ? 1 : 0);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t row = blockIdx.x; row < view.outer * view.inner; row += gridDim.x) {
    C before = none;  // of all elements so far
    for (int64_t begin = 0; begin < view.length; begin += kThreads) {
      const int64_t k = begin + threadIdx.x;
      const int64_t place = RowAt(view, row) + (reverse ? view.length - 1 - k : k) * view.inner;
      C with = k < view.length ? Widen(x[place]) : none;
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const C lower = __shfl_up_sync(0xffffffffu, with, offset);
        if (lane >= offset) with = With<kProduct>(lower, with);
      }
      if (lane == 31) ends[warp] = with;
      C without = __shfl_up_sync(0xffffffffu, with, 1);
      if (lane == 0) without = none;
      __syncthreads();
      C lower = before;
      for (int other = 0; other < kThreads / 32; ++other) {
        if (other < warp) lower = With<kProduct>(lower, ends[other]);
        before = With<kProduct>(before, ends[other]);
      }
      __syncthreads();
      if (k < view.length) y[place] = Narrow<T>(With<kProduct>(lower, exclusive ? without : with));
    }
  }
}

// What a block a row is worth it for: a row that is long, of which there are few.
bool TakesBlocks(const AxisView& view) { return view.length >= 256 && view.outer * view.inner < 16384; }

template <bool kProduct>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareCumulative(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType &x = spec.inputs[0].type, &axis = spec.inputs[1].type;
  if (!IsSmallInts(axis) || axis.elements() != 1)
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(axis), ", wanted one axis"));
  if (spec.inputs[1].constant == nullptr) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                                 "): the CUDA device needs an axis that is known at load"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const absl::StatusOr<AxisView> along = ViewAlong(x.shape, ReadInts(axis, spec.inputs[1].constant)[0]);
  if (!along.ok()) return Invalid(spec, along.status().message());
  const bool exclusive = spec.attributes.Int("exclusive", 0) != 0,
             reverse = spec.attributes.Int("reverse", 0) != 0;
  return ForTypes(Types(), spec, x.dtype, [=, view = *along](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t rows = view.outer * view.inner;
      if (rows * view.length == 0) return absl::OkStatus();
      if (TakesBlocks(view)) {
        return Launch(AccumulatedByBlocks<kProduct, T>, RowBlocks(view), kThreads, stream,
                      Input<T>(arguments, 0), Output<T>(arguments, 0), view, exclusive, reverse);
      }
      return Launch(Accumulated<kProduct, T>, BlocksFor(rows), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), view, exclusive, reverse);
    });
  });
}

}  // namespace

void RegisterAlongAxisKernels(KernelRegistry& registry) {
  registry.Add("ArgMax", "", PrepareArg<true>);
  registry.Add("ArgMin", "", PrepareArg<false>);
  registry.Add("CumProd", "", PrepareCumulative<true>);
  registry.Add("CumSum", "", PrepareCumulative<false>);
  registry.Add("Hardmax", "", PrepareHardmax);
  registry.Add("TopK", "", PrepareTopK);
}

}  // namespace pipec::cuda
