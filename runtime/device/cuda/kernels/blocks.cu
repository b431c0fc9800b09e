// MaxUnpool (X, I, output_shape?) -> (Y): zeros with each element of X where I says it came from, of equal places
// the last. Col2Im (X, image_shape, block_shape) -> (Y): blocks laid back over the image that they were cut out of,
// added up where they meet. Det (X) -> (Y): determinants by elimination with row pivots in float64. Of float32 and
// float64.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/blocks.h"

namespace pipec::cuda {
namespace {

struct Unpooled {
  int rank;
  int64_t elements, places;  // of X; of the tensor that was pooled
  int64_t pooled[kMaxRank], strides[kMaxRank];
  FaultSite fault;
};

// The last element of X that names each place of Y: 1 + its place there.
__global__ void __launch_bounds__(kThreads)
    FindLast(const int64_t* index, unsigned long long* last, const Unpooled unpooled) {
  for (int64_t i = FirstItem(); i < unpooled.elements; i += ItemStride()) {
    const int64_t from = index[i];
    if (from < 0 || from >= unpooled.places) {
      LeaveNote(unpooled.fault, from, i);
      continue;
    }
    int64_t at = 0, rest = from;
    for (int axis = unpooled.rank - 1; axis >= 0; --axis) {
      const int64_t next = rest / unpooled.pooled[axis];
      at += (rest - next * unpooled.pooled[axis]) * unpooled.strides[axis];
      rest = next;
    }
    atomicMax(&last[at], static_cast<unsigned long long>(i + 1));
  }
}
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PutBack(const T* x, const unsigned long long* last, T* y, int64_t elements) {
  for (int64_t i = FirstItem(); i < elements; i += ItemStride()) y[i] = last[i] == 0 ? T(0) : x[last[i] - 1];
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMaxUnpool(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Shape pooled, PooledShapeOf(spec));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const Shape strides = Strides(y.shape);
  Unpooled unpooled{static_cast<int>(pooled.size()), x.elements(), NumElements(pooled)};
  for (int i = 0; i < unpooled.rank; ++i) unpooled.pooled[i] = pooled[i], unpooled.strides[i] = strides[i];
  unpooled.fault = context.AddFaultSite(spec, "index", absl::StrCat("in [0,", unpooled.places - 1, "]"));
  return ForWideFloats(spec, x.dtype, [unpooled, elements = y.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(elements * 8,
                      [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                        if (elements == 0) return absl::OkStatus();
                        auto* const last = static_cast<unsigned long long*>(arguments.workspace);
                        RETURN_IF_CUDA_ERROR(cudaMemsetAsync(last, 0, elements * 8, stream));
                        if (unpooled.elements > 0) {
                          RETURN_IF_ERROR(Launch(FindLast, BlocksFor(unpooled.elements), kThreads, stream,
                                                 Input<int64_t>(arguments, 1), last, unpooled));
                        }
                        return Launch(PutBack<T>, BlocksFor(elements), kThreads, stream,
                                      Input<T>(arguments, 0), last, Output<T>(arguments, 0), elements);
                      });
  });
}

struct Image {
  int rank;
  int64_t planes, places, taps, blocks;
  int64_t dims[kMaxRank], strides[kMaxRank], dilations[kMaxRank], before[kMaxRank], block[kMaxRank],
      counts[kMaxRank];
};

// A place adds up, tap by tap, what the blocks over it hold.
template <typename T>
__global__ void __launch_bounds__(kThreads) LayBlocks(const T* x, T* y, const Image image) {
  for (int64_t i = FirstItem(); i < image.planes * image.places; i += ItemStride()) {
    const int64_t plane = i / image.places;
    T sum = 0;
    for (int64_t tap = 0; tap < image.taps; ++tap) {
      int64_t rest = i - plane * image.places, rest_tap = tap, block = 0, stride = 1;
      bool holds = true;
      for (int axis = image.rank - 1; axis >= 0; --axis) {
        const int64_t next = rest / image.dims[axis], next_tap = rest_tap / image.block[axis];
        const int64_t place = rest - next * image.dims[axis], k = rest_tap - next_tap * image.block[axis];
        const int64_t start = place + image.before[axis] - k * image.dilations[axis];
        const int64_t at = start / image.strides[axis];
        holds = holds && start >= 0 && at * image.strides[axis] == start && at < image.counts[axis];
        block += at * stride;
        stride *= image.counts[axis];
        rest = next, rest_tap = next_tap;
      }
      if (holds) sum += x[(plane * image.taps + tap) * image.blocks + block];
    }
    y[i] = sum;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareCol2Im(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const ImageBlocks blocks, ImageBlocks::Of(spec));
  if (spec.inputs[2].constant == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("node '", spec.name, "' (Col2Im): the CUDA device needs a block that is known at load"));
  }
  const Ints block = ReadInts(spec.inputs[2].type, spec.inputs[2].constant);
  absl::StatusOr<Ints> counts = blocks.Counts(block);
  if (!counts.ok()) return Invalid(spec, counts.status().message());
  Image image{static_cast<int>(blocks.image.size()), blocks.planes, 1, blocks.taps, blocks.blocks};
  for (int i = 0; i < image.rank; ++i) {
    image.places *= blocks.image[i];
    image.dims[i] = blocks.image[i], image.strides[i] = blocks.strides[i];
    image.dilations[i] = blocks.dilations[i], image.before[i] = blocks.before[i];
    image.block[i] = block[i], image.counts[i] = (*counts)[i];
  }
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [image](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [image](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t all = image.planes * image.places;
      if (all == 0) return absl::OkStatus();
      return Launch(LayBlocks<T>, BlocksFor(all), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), image);
    });
  });
}

// A thread a matrix, which it eliminates in the workspace.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Eliminate(const T* x, T* y, double* memory, int64_t matrices, int64_t m) {
  for (int64_t matrix = FirstItem(); matrix < matrices; matrix += ItemStride()) {
    double* const a = memory + matrix * m * m;
    for (int64_t i = 0; i < m * m; ++i) a[i] = static_cast<double>(x[matrix * m * m + i]);
    double det = 1;
    for (int64_t k = 0; k < m && det != 0; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < m; ++i) {
        if (fabs(a[i * m + k]) > fabs(a[pivot * m + k])) pivot = i;
      }
      for (int64_t j = k; pivot != k && j < m; ++j) {
        const double other = a[pivot * m + j];
        a[pivot * m + j] = a[k * m + j];
        a[k * m + j] = other;
      }
      const double own = a[k * m + k];
      det *= pivot == k ? own : -own;
      for (int64_t i = k + 1; own != 0 && i < m; ++i) {
        const double factor = a[i * m + k] / own;
        for (int64_t j = k + 1; j < m; ++j) a[i * m + j] -= factor * a[k * m + j];
      }
    }
    y[matrix] = static_cast<T>(det);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareDet(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  const size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2])
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted square matrices"));
  const Shape outer(x.shape.begin(), x.shape.end() - 2);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, outer}));
  return ForWideFloats(spec, x.dtype, [m = x.shape.back(), matrices = NumElements(outer)](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t bytes = matrices * m * m * static_cast<int64_t>(sizeof(double));
    return MakeKernel(bytes, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (matrices == 0) return absl::OkStatus();
      return Launch(Eliminate<T>, BlocksFor(matrices), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), static_cast<double*>(arguments.workspace), matrices, m);
    });
  });
}

}  // namespace

void RegisterBlockKernels(KernelRegistry& registry) {
  registry.Add("Col2Im", "", PrepareCol2Im);
  registry.Add("Det", "", PrepareDet);
  registry.Add("MaxUnpool", "", PrepareMaxUnpool);
}

}  // namespace pipec::cuda
