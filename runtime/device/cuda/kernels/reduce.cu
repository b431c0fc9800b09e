// ReduceSum, ReduceMean, ReduceSumSquare of floats, with axes that are known at load. The order of every sum is fixed by the
// shape alone. Threads add in the type they compute in, what they give is added in float64.
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/reduce_plan.h"

namespace pipec::cuda {
namespace {

struct Sum {
  static constexpr bool kMean = false;
  template <typename T>
  static __device__ __forceinline__ T Load(T x) {
    return x;
  }
};
struct Mean : Sum {
  static constexpr bool kMean = true;
};
struct SumSquare {
  static constexpr bool kMean = false;
  template <typename T>
  static __device__ __forceinline__ T Load(T x) {
    return x * x;
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
__device__ __forceinline__ T Finish(double total, int64_t reduced) {
  return Narrow<T>(static_cast<Compute<T>>(Op::kMean ? total / static_cast<double>(reduced) : total));
}

// A block a result: for results of elements that lie together.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    ReduceRows(const T* x, T* y, const Axes kept, const Axes reduced) {
  for (int64_t i = blockIdx.x; i < kept.elements; i += gridDim.x) {
    const T* const from = x + OffsetOf(kept, i);
    Compute<T> sum = 0;
    for (int64_t r = threadIdx.x; r < reduced.elements; r += kThreads) {
      sum += Op::Load(Widen(from[OffsetOf(reduced, r)]));
    }
    const double total = FoldThreads<SumOf, kThreads>(static_cast<double>(sum), 0.0);
    if (threadIdx.x == 0) y[i] = Finish<Op, T>(total, reduced.elements);
  }
}

// 32 neighbouring results a block, kLanes threads each: for results that lie beside each other.
constexpr int kLanes = kThreads / 32;
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    ReduceColumns(const T* x, T* y, const Axes kept, const Axes reduced) {
  __shared__ double partial[kThreads];
  const int column = threadIdx.x % 32, lane = threadIdx.x / 32;
  for (int64_t begin = int64_t{blockIdx.x} * 32; begin < kept.elements; begin += int64_t{gridDim.x} * 32) {
    const int64_t i = begin + column;
    Compute<T> sum = 0;
    if (i < kept.elements) {
      const T* const from = x + OffsetOf(kept, i);
      for (int64_t r = lane; r < reduced.elements; r += kLanes)
        sum += Op::Load(Widen(from[OffsetOf(reduced, r)]));
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (lane == 0 && i < kept.elements) {
      double total = 0;
      for (int other = 0; other < kLanes; ++other) total += partial[other * 32 + column];
      y[i] = Finish<Op, T>(total, reduced.elements);
    }
    __syncthreads();
  }
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
  return ForAllFloats(spec, dtype, [=, rows = plan->inner_reduced](auto tag) {
    using T = typename decltype(tag)::type;
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
  registry.Add("ReduceMean", "", Prepare<Mean>);
  registry.Add("ReduceSum", "", Prepare<Sum>);
  registry.Add("ReduceSumSquare", "", Prepare<SumSquare>);
}

}  // namespace pipec::cuda
