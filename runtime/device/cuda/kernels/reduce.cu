// ReduceSum, ReduceMean, ReduceSumSquare, ReduceMax, ReduceMin and ReduceProd of floats, int64 and int32, with axes
// that are known at load. The order of every sum is fixed by the shape alone. Threads add in the type they compute
// in, what they give is added in float64. A sum of many elements that has one result is by all of the device
// (device_wide.h).
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/device_wide.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/reduce_plan.h"

namespace pipec::cuda {
namespace {

// What elements of T are folded in: threads in Part, what they give in Total.
template <typename T>
using WideTotal = std::conditional_t<std::is_integral_v<T>, T, double>;

struct Sum {
  static constexpr bool kMean = false;
  template <typename T>
  using Total = WideTotal<T>;
  template <typename T>
  static __device__ __forceinline__ T First() {
    return T(0);
  }
  template <typename T>
  static __device__ __forceinline__ T Load(T x) {
    return x;
  }
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return WrapAdd(a, b);
  }
};
struct Mean : Sum {
  static constexpr bool kMean = true;
};
struct SumSquare : Sum {
  template <typename T>
  static __device__ __forceinline__ T Load(T x) {
    return WrapMul(x, x);
  }
};
struct Prod : Sum {
  template <typename T>
  static __device__ __forceinline__ T First() {
    return T(1);
  }
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return WrapMul(a, b);
  }
};
// NaN wins. Of no elements at all: the least value there is.
struct Max : Sum {
  template <typename T>
  using Total = T;
  template <typename T>
  static __device__ __forceinline__ T First() {
    return std::is_integral_v<T> ? kLeastOf<T> : static_cast<T>(-INFINITY);
  }
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min : Max {
  template <typename T>
  static __device__ __forceinline__ T First() {
    return std::is_integral_v<T> ? kMostOf<T> : static_cast<T>(INFINITY);
  }
  template <typename T>
  static __device__ __forceinline__ T Combine(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

struct Axes {
  int rank;
  int64_t sizes[kMaxRank], strides[kMaxRank];  // of the operand, outermost first
  int64_t elements;
};

Axes AxesOf(const std::array<ReduceAxis, kMaxRank>& from, int rank, int64_t elements) {
  Axes axes{.rank = rank, .elements = elements};
  for (int i = 0; i < rank; ++i) axes.sizes[i] = from[i].size, axes.strides[i] = from[i].stride;
  return axes;
}

__device__ __forceinline__ int64_t OffsetOf(const Axes& axes, int64_t index) {
  int64_t offset = 0;
  for (int i = axes.rank - 1; i > 0; --i) {
    const int64_t rest = index / axes.sizes[i];
    offset += (index - rest * axes.sizes[i]) * axes.strides[i];
    index = rest;
  }
  return axes.rank == 0 ? 0 : offset + index * axes.strides[0];
}

template <typename Op, typename T>
using TotalOf = typename Op::template Total<Compute<T>>;

template <typename Op, typename T>
__device__ __forceinline__ T Finish(TotalOf<Op, T> total, int64_t reduced) {
  if constexpr (Op::kMean) {
    if constexpr (std::is_integral_v<T>)
      return reduced == 0 ? T(0) : static_cast<T>(total / static_cast<T>(reduced));
    total = total / static_cast<TotalOf<Op, T>>(reduced);
  }
  return Narrow<T>(static_cast<Compute<T>>(total));
}

// A block a result: for results of elements that lie together.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    ReduceRows(const T* x, T* y, const Axes kept, const Axes reduced) {
  for (int64_t i = blockIdx.x; i < kept.elements; i += gridDim.x) {
    const T* const from = x + OffsetOf(kept, i);
    auto part = Op::template First<Compute<T>>();
    for (int64_t r = threadIdx.x; r < reduced.elements; r += kThreads) {
      part = Op::Combine(part, Op::Load(Widen(from[OffsetOf(reduced, r)])));
    }
    using Total = TotalOf<Op, T>;
    const Total total = FoldThreads<Op, kThreads>(static_cast<Total>(part), Op::template First<Total>());
    if (threadIdx.x == 0) y[i] = Finish<Op, T>(total, reduced.elements);
  }
}

// 32 neighbouring results a block, kLanes threads each: for results that lie beside each other.
constexpr int kLanes = kThreads / 32;
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    ReduceColumns(const T* x, T* y, const Axes kept, const Axes reduced) {
  using Total = TotalOf<Op, T>;
  __shared__ Total partial[kThreads];
  const int column = threadIdx.x % 32, lane = threadIdx.x / 32;
  for (int64_t begin = int64_t{blockIdx.x} * 32; begin < kept.elements; begin += int64_t{gridDim.x} * 32) {
    const int64_t i = begin + column;
    auto part = Op::template First<Compute<T>>();
    if (i < kept.elements) {
      const T* const from = x + OffsetOf(kept, i);
      for (int64_t r = lane; r < reduced.elements; r += kLanes)
        part = Op::Combine(part, Op::Load(Widen(from[OffsetOf(reduced, r)])));
    }
    partial[threadIdx.x] = static_cast<Total>(part);
    __syncthreads();
    if (lane == 0 && i < kept.elements) {
      Total total = partial[column];
      for (int other = 1; other < kLanes; ++other) total = Op::Combine(total, partial[other * 32 + column]);
      y[i] = Finish<Op, T>(total, reduced.elements);
    }
    __syncthreads();
  }
}

template <typename Op>
inline constexpr bool kIsSum =
    std::is_same_v<Op, Sum> || std::is_same_v<Op, Mean> || std::is_same_v<Op, SumSquare>;

// Of so many elements a single sum is one by all of the device.
constexpr int64_t kWide = 1 << 15;

template <typename Op, typename T>
__global__ void Store(const double* total, T* y, int64_t reduced) {
  *y = Finish<Op, T>(*total, reduced);
}

template <typename Op, typename T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWideSum(DType dtype, int64_t n) {
  constexpr Terms kWhat = std::is_same_v<Op, SumSquare> ? Terms::kSquares : Terms::kElements;
  constexpr int64_t kTotal = 256;  // bytes before the scratch, which keep it aligned
  size_t scratch = 0;
  RETURN_IF_ERROR(
      CudaStatus(DeviceSumBytes(kWhat, dtype, n, &scratch), "the workspace of a device-wide sum"));
  return MakeKernel(kTotal + static_cast<int64_t>(scratch),
                    [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                      auto* const total = static_cast<double*>(arguments.workspace);
                      auto* const rest = static_cast<std::byte*>(arguments.workspace) + kTotal;
                      RETURN_IF_ERROR(CudaStatus(
                          DeviceSum(kWhat, dtype, arguments.inputs[0], n, total, rest, scratch, stream),
                          "a device-wide sum"));
                      return Launch(Store<Op, T>, 1, 1, stream, total, Output<T>(arguments, 0), n);
                    });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, spec.outputs[0].type.shape}));
  Ints axes;
  if (Has(spec, 1)) {
    const TensorType& type = spec.inputs[1].type;
    if (!IsSmallInts(type)) {
      return Invalid(spec, absl::StrCat("input 1 is ", ToString(type), ", wanted a list of axes"));
    }
    if (spec.inputs[1].constant == nullptr) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                                   "): the CUDA device needs axes that are known at load"));
    }
    axes = ReadInts(type, spec.inputs[1].constant);
  }
  const absl::StatusOr<ReducePlan> plan =
      MakeReducePlan(spec.inputs[0].type.shape, axes, spec.attributes.Int("keepdims", 1) != 0,
                     spec.attributes.Int("noop_with_empty_axes", 0) != 0, spec.outputs[0].type.shape);
  if (!plan.ok()) return Invalid(spec, plan.status().message());
  const Axes kept = AxesOf(plan->kept, plan->kept_rank, plan->kept_elements);
  const Axes reduced = AxesOf(plan->reduced, plan->reduced_rank, plan->reduced_elements);
  using Types = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t>;
  const bool wide =
      kept.elements == 1 && plan->inner_reduced && reduced.rank == 1 && reduced.elements >= kWide;
  return ForTypes(
      Types(), spec, dtype,
      [=, rows = plan->inner_reduced](auto tag) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        using T = typename decltype(tag)::type;
        if constexpr (kIsSum<Op> && !std::is_integral_v<T>) {
          if (wide) return MakeWideSum<Op, T>(dtype, reduced.elements);
        }
        return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          if (kept.elements == 0) return absl::OkStatus();
          const int64_t items = rows ? kept.elements : (kept.elements + 31) / 32;
          return Launch(rows ? ReduceRows<Op, T> : ReduceColumns<Op, T>,
                        dim3(static_cast<unsigned>(std::min<int64_t>(items, 1 << 16))), kThreads, stream,
                        Input<T>(arguments, 0), Output<T>(arguments, 0), kept, reduced);
        });
      });
}

}  // namespace

void RegisterReduceKernels(KernelRegistry& registry) {
  registry.Add("ReduceMax", "", Prepare<Max>);
  registry.Add("ReduceMean", "", Prepare<Mean>);
  registry.Add("ReduceMin", "", Prepare<Min>);
  registry.Add("ReduceProd", "", Prepare<Prod>);
  registry.Add("ReduceSum", "", Prepare<Sum>);
  registry.Add("ReduceSumSquare", "", Prepare<SumSquare>);
}

}  // namespace pipec::cuda
