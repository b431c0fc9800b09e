// GatherGrad, ScatterND and ScatterElements: updates of places that indices name. Several updates of one place are
// made in the order of the indices, whatever the order of threads.
//
// Rows of updates (GatherGrad, ScatterND): which row each update names is found first; the updates of each row are
// counted, the counts summed up to where each row's list begins, and the lists filled in order, by a block for each
// range of rows. Then each element of the result is made by one thread from the updates of its row.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/indices.cuh"
#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/gather.h"

namespace pipec::cuda {
namespace {

#define PIPEC_UPDATE(name, expression)                        \
  struct name {                                               \
    template <typename T>                                     \
    static __device__ __forceinline__ T Of(T old, T update) { \
      return expression;                                      \
    }                                                         \
  };
PIPEC_UPDATE(Replace, (static_cast<void>(old), update))
PIPEC_UPDATE(Add, WrapAdd(old, update))
PIPEC_UPDATE(Mul, WrapMul(old, update))
PIPEC_UPDATE(Max, old > update || old != old ? old : update)
PIPEC_UPDATE(Min, old < update || old != old ? old : update)
#undef PIPEC_UPDATE

// Where the lists lie in the workspace, int32 each: target [updates], begin [rows + 1], cursor [rows], list [updates].
struct Lists {
  int32_t rows, updates;
  int32_t *target, *begin, *cursor, *list;

  static int64_t Bytes(int64_t rows, int64_t updates) { return (2 * updates + 2 * rows + 1) * 4; }
  static Lists In(void* workspace, int64_t rows, int64_t updates) {
    Lists lists{static_cast<int32_t>(rows), static_cast<int32_t>(updates)};
    lists.target = static_cast<int32_t*>(workspace);
    lists.begin = lists.target + updates;
    lists.cursor = lists.begin + rows + 1;
    lists.list = lists.cursor + rows;
    return lists;
  }
};

// cursor: how many updates each row has; it is 0 before.
__global__ void __launch_bounds__(kThreads)
    FindTargets(const void* indices, const Lists lists, const IndexReader reader) {
  for (int64_t i = FirstItem(); i < lists.updates; i += ItemStride()) {
    const int64_t row = reader.At(indices, i, lists.rows);
    lists.target[i] = static_cast<int32_t>(row);
    if (row >= 0) atomicAdd(&lists.cursor[row], 1);
  }
}
__global__ void __launch_bounds__(kThreads)
    FindTupleTargets(const int64_t* indices, const Lists lists, const TupleReader reader) {
  for (int64_t i = FirstItem(); i < lists.updates; i += ItemStride()) {
    const int64_t row = reader.At(indices, i);
    lists.target[i] = static_cast<int32_t>(row);
    if (row >= 0) atomicAdd(&lists.cursor[row], 1);
  }
}

// begin: the sums of the counts before each row; the cursors are set there. One block.
__global__ void __launch_bounds__(kThreads) SumCounts(const Lists lists) {
  __shared__ int32_t sums[kThreads];
  const int32_t share = (lists.rows + kThreads - 1) / kThreads;
  const int32_t first = min(static_cast<int32_t>(threadIdx.x) * share, lists.rows);
  const int32_t last = min(first + share, lists.rows);
  int32_t own = 0;
  for (int32_t row = first; row < last; ++row) own += lists.cursor[row];
  sums[threadIdx.x] = own;
  for (int offset = 1; offset < kThreads; offset *= 2) {
    __syncthreads();
    const int32_t other = threadIdx.x >= offset ? sums[threadIdx.x - offset] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
  }
  int32_t at = sums[threadIdx.x] - own;
  for (int32_t row = first; row < last; ++row) {
    const int32_t count = lists.cursor[row];
    lists.begin[row] = lists.cursor[row] = at;
    at += count;
  }
  if (threadIdx.x == kThreads - 1) lists.begin[lists.rows] = at;
}

// Each block has rows [first, last) and goes through all updates in order, kThreads at a time.
__global__ void __launch_bounds__(kThreads) FillLists(const Lists lists) {
  __shared__ int32_t found[kThreads];
  __shared__ int32_t before[kThreads / 32];
  const int64_t rows = lists.rows;
  const auto first = static_cast<int32_t>(rows * blockIdx.x / gridDim.x),
             last = static_cast<int32_t>(rows * (blockIdx.x + 1) / gridDim.x);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int32_t at = 0; at < lists.updates; at += kThreads) {
    const int32_t i = at + static_cast<int32_t>(threadIdx.x);
    const int32_t target = i < lists.updates ? lists.target[i] : -1;
    const bool mine = target >= first && target < last;
    const unsigned lanes = __ballot_sync(0xffffffffu, mine);
    if (lane == 0) before[warp] = __popc(lanes);
    if (__syncthreads_or(mine) == 0) continue;
    int32_t place = __popc(lanes & ((1u << lane) - 1));
    for (int other = 0; other < warp; ++other) place += before[other];
    if (mine) found[place] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
      int32_t count = 0;
      for (int other = 0; other < kThreads / 32; ++other) count += before[other];
      for (int32_t k = 0; k < count; ++k) lists.list[lists.cursor[lists.target[found[k]]]++] = found[k];
    }
    __syncthreads();
  }
}

// Of `outer` tensors of lists.rows rows of `inner` elements, each with lists.updates rows of updates. No data: of
// zeros; data may be y.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    UpdateRows(const T* data, const T* updates, T* y, const Lists lists, int64_t outer, int64_t inner) {
  const int64_t elements = outer * lists.rows * inner;
  for (int64_t i = FirstItem(); i < elements; i += ItemStride()) {
    const int64_t row = i / inner, column = i - row * inner, tensor = row / lists.rows;
    const auto own = static_cast<int32_t>(row - tensor * lists.rows);
    const T* const from = updates + tensor * lists.updates * inner + column;
    Compute<T> value = data == nullptr ? Compute<T>(0) : Widen(data[i]);
    for (int32_t k = lists.begin[own]; k < lists.begin[own + 1]; ++k) {
      value = Op::Of(value, Widen(from[lists.list[k] * inner]));
    }
    y[i] = Narrow<T>(value);
  }
}

// find(lists) enqueues what finds the targets and counts them.
template <typename Op, typename T, typename Find>
absl::Status RunUpdates(cudaStream_t stream, void* workspace, int64_t rows, int64_t count, int64_t outer,
                        int64_t inner, const T* data, const T* updates, T* y, const Find& find) {
  if (outer * rows * inner == 0) return absl::OkStatus();
  const Lists lists = Lists::In(workspace, rows, count);
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(lists.cursor, 0, rows * 4, stream));
  if (count > 0) RETURN_IF_ERROR(find(lists));
  RETURN_IF_ERROR(Launch(SumCounts, 1, kThreads, stream, lists));
  if (count > 0) {
    const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(rows / 32, 1, 512));
    RETURN_IF_ERROR(Launch(FillLists, blocks, kThreads, stream, lists));
  }
  return Launch(UpdateRows<Op, T>, BlocksFor(outer * rows * inner), kThreads, stream, data, updates, y, lists,
                outer, inner);
}

absl::Status CheckRows(const KernelSpec& spec, int64_t rows, int64_t updates) {
  if (std::max(rows, updates) < std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): ", updates,
                                               " updates of ", rows, " rows, fewer than 2^31 are taken"));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGatherGrad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const GatherSizes sizes, GatherGradSizesOf(spec));
  RETURN_IF_ERROR(CheckRows(spec, sizes.dim, sizes.count));
  const IndexReader reader = IndexReader::Of(spec, 1, sizes.dim, context);
  return ForAllFloats(spec, spec.inputs[0].type.dtype, [=, accumulates = spec.accumulates](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(
        Lists::Bytes(sizes.dim, sizes.count), [=](cudaStream_t stream, const KernelArguments& arguments) {
          const T* const sum = accumulates && !arguments.first_microbatch ? Output<T>(arguments, 0) : nullptr;
          return RunUpdates<Add, T>(stream, arguments.workspace, sizes.dim, sizes.count, sizes.outer,
                                    sizes.inner, sum, Input<T>(arguments, 0), Output<T>(arguments, 0),
                                    [&](const Lists& lists) {
                                      return Launch(FindTargets, BlocksFor(sizes.count), kThreads, stream,
                                                    arguments.inputs[1], lists, reader);
                                    });
        });
  });
}

using UpdateTypes = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t>;

// make(Op(), TypeTag<T>()) for the attribute reduction and the element type; replacing only looks at the size.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForUpdate(const KernelSpec& spec, DType dtype, const Make& make) {
  const std::string reduction = spec.attributes.String("reduction", "none");
  const auto typed = [&](auto op) {
    return ForTypes(UpdateTypes(), spec, dtype, [&](auto tag) { return make(op, tag); });
  };
  if (reduction == "none") return ForSize(spec, dtype, [&](auto tag) { return make(Replace(), tag); });
  if (reduction == "add") return typed(Add());
  if (reduction == "mul") return typed(Mul());
  if (reduction == "max") return typed(Max());
  if (reduction == "min") return typed(Min());
  return Invalid(spec, absl::StrCat("reduction is ", reduction, ", wanted none, add, mul, max or min"));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareScatterNd(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  const TensorType& data = spec.inputs[0].type;
  Shape wanted;
  ASSIGN_OR_RETURN(const TupleSlices slices, TupleSlicesOf(spec, 0, &wanted));
  RETURN_IF_ERROR(CheckInput(spec, 2, {data.dtype, wanted}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, data));
  const int64_t rows = slices.places(), count = slices.tuples, inner = slices.slice;
  RETURN_IF_ERROR(CheckRows(spec, rows, count));
  const TupleReader reader = TupleReader::Of(spec, slices.dims, context);
  return ForUpdate(spec, data.dtype, [=](auto op, auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(Lists::Bytes(rows, count), [=](cudaStream_t stream, const KernelArguments& arguments) {
      return RunUpdates<decltype(op), T>(stream, arguments.workspace, rows, count, 1, inner,
                                         Input<T>(arguments, 0), Input<T>(arguments, 2),
                                         Output<T>(arguments, 0), [&](const Lists& lists) {
                                           return Launch(FindTupleTargets, BlocksFor(count), kThreads, stream,
                                                         Input<int64_t>(arguments, 1), lists, reader);
                                         });
    });
  });
}

// A line: the places of indices that differ in the axis' coordinate alone. One thread has a line, so that its
// updates are in order; lines meet nowhere.
struct Lines {
  int rank, axis;
  int64_t lines, length, step, data_dim, data_step;
  int64_t dims[kMaxRank], data_strides[kMaxRank];
};

template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads)
    UpdateLines(const void* indices, const T* updates, T* y, const Lines lines, const IndexReader reader) {
  for (int64_t line = FirstItem(); line < lines.lines; line += ItemStride()) {
    int64_t at = 0, data_at = 0, stride = 1, rest = line;
    for (int axis = lines.rank - 1; axis >= 0; --axis) {
      if (axis != lines.axis) {
        const int64_t next = rest / lines.dims[axis], place = rest - next * lines.dims[axis];
        at += place * stride;
        data_at += place * lines.data_strides[axis];
        rest = next;
      }
      stride *= lines.dims[axis];
    }
    for (int64_t i = 0; i < lines.length; ++i) {
      const int64_t from = at + i * lines.step, place = reader.At(indices, from, lines.data_dim);
      if (place < 0) continue;
      T& element = y[data_at + place * lines.data_step];
      element = Narrow<T>(Op::Of(Widen(element), Widen(updates[from])));
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareScatterElements(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  const TensorType& data = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const ElementPlaces places, ElementPlacesOf(spec));
  RETURN_IF_ERROR(CheckInput(spec, 2, {data.dtype, places.dims}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, data));
  Lines lines{.rank = places.rank, .axis = places.axis, .lines = places.lines, .length = places.length()};
  lines.step = places.step();
  lines.data_dim = places.data_dim;
  lines.data_step = places.data_strides[places.axis];
  for (int i = 0; i < places.rank; ++i) {
    lines.dims[i] = places.dims[i];
    lines.data_strides[i] = places.data_strides[i];
  }
  const IndexReader reader = IndexReader::Of(spec, 1, places.data_dim, context);
  return ForUpdate(spec, data.dtype, [=, bytes = data.bytes()](auto op, auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (bytes > 0 && arguments.inputs[0] != arguments.outputs[0]) {
        RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(arguments.outputs[0], arguments.inputs[0], bytes,
                                             cudaMemcpyDeviceToDevice, stream));
      }
      if (lines.lines == 0) return absl::OkStatus();
      return Launch(UpdateLines<decltype(op), T>, BlocksFor(lines.lines), kThreads, stream,
                    arguments.inputs[1], Input<T>(arguments, 2), Output<T>(arguments, 0), lines, reader);
    });
  });
}

}  // namespace

void RegisterScatterKernels(KernelRegistry& registry) {
  registry.Add("GatherGrad", kPipecDomain, PrepareGatherGrad, /*adds=*/true);
  registry.Add("ScatterElements", "", PrepareScatterElements);
  registry.Add("ScatterND", "", PrepareScatterNd);
}

}  // namespace pipec::cuda
