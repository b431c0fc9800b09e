// Gather, GatherElements and GatherND.
#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/indices.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/units.cuh"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/gather.h"

namespace pipec::cuda {
namespace {

// Rows of `width` units; row r of the result is row r / count * dim + index[r % count] of data.
template <typename U>
__global__ void __launch_bounds__(kThreads)
    GatherRows(const U* data, const void* indices, U* y, const GatherSizes sizes, int64_t width,
               const IndexReader reader) {
  const int64_t units = sizes.outer * sizes.count * width;
  for (int64_t i = FirstItem(); i < units; i += ItemStride()) {
    const int64_t row = i / width, outer = row / sizes.count;
    const int64_t place = reader.At(indices, row - outer * sizes.count, sizes.dim);
    if (place >= 0) y[i] = data[(outer * sizes.dim + place) * width + (i - row * width)];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGather(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const GatherSizes sizes, GatherSizesOf(spec));
  const int64_t bytes = sizes.inner * SizeOf(spec.inputs[0].type.dtype);
  const IndexReader reader = IndexReader::Of(spec, 1, sizes.dim, context);
  return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
    if (sizes.outer * sizes.count * bytes == 0) return absl::OkStatus();
    const int64_t unit = UnitOf({bytes, AddressOf(arguments.inputs[0]), AddressOf(arguments.outputs[0])});
    return ForUnit(unit, [&](auto zero) {
      using U = decltype(zero);
      return Launch(GatherRows<U>, BlocksFor(sizes.outer * sizes.count * (bytes / unit)), kThreads, stream,
                    Input<U>(arguments, 0), arguments.inputs[1], Output<U>(arguments, 0), sizes, bytes / unit,
                    reader);
    });
  });
}

template <typename U>
__global__ void __launch_bounds__(kThreads)
    GatherSlices(const U* data, const int64_t* indices, U* y, int64_t rows, int64_t tuples, int64_t places,
                 int64_t width, const TupleReader reader) {
  for (int64_t i = FirstItem(); i < rows * width; i += ItemStride()) {
    const int64_t row = i / width, place = reader.At(indices, row);
    if (place >= 0) y[i] = data[(row / tuples * places + place) * width + (i - row * width)];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGatherNd(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  if (SizeOf(dtype) == 0) return NoKernelFor(spec, dtype);
  Shape gathered;
  ASSIGN_OR_RETURN(const TupleSlices slices,
                   TupleSlicesOf(spec, spec.attributes.Int("batch_dims", 0), &gathered));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, gathered}));
  const TupleReader reader = TupleReader::Of(spec, slices.dims, context);
  const int64_t bytes = slices.slice * SizeOf(dtype), rows = slices.batch * slices.tuples;
  return MakeKernel(
      0,
      [=, tuples = slices.tuples, places = slices.places()](
          cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
        if (rows * bytes == 0) return absl::OkStatus();
        const int64_t unit = UnitOf({bytes, AddressOf(arguments.inputs[0]), AddressOf(arguments.outputs[0])});
        return ForUnit(unit, [&](auto zero) {
          using U = decltype(zero);
          return Launch(GatherSlices<U>, BlocksFor(rows * (bytes / unit)), kThreads, stream,
                        Input<U>(arguments, 0), Input<int64_t>(arguments, 1), Output<U>(arguments, 0), rows,
                        tuples, places, bytes / unit, reader);
        });
      });
}

// The places of GatherElements and ScatterElements on the GPU.
struct Places {
  int rank, axis;
  int64_t elements;
  int64_t dims[kMaxRank], data_strides[kMaxRank];
  int64_t data_dim;
};
Places PlacesOf(const ElementPlaces& from) {
  Places places{.rank = from.rank, .axis = from.axis, .elements = NumElements(from.dims)};
  places.data_dim = from.data_dim;
  for (int i = 0; i < from.rank; ++i) {
    places.dims[i] = from.dims[i];
    places.data_strides[i] = from.data_strides[i];
  }
  return places;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    GatherElements(const T* data, const void* indices, T* y, const Places places, const IndexReader reader) {
  for (int64_t i = FirstItem(); i < places.elements; i += ItemStride()) {
    const int64_t place = reader.At(indices, i, places.data_dim);
    if (place < 0) continue;
    int64_t at = place * places.data_strides[places.axis], rest = i;
    for (int axis = places.rank - 1; axis >= 0; --axis) {
      const int64_t next = rest / places.dims[axis];
      if (axis != places.axis) at += (rest - next * places.dims[axis]) * places.data_strides[axis];
      rest = next;
    }
    y[i] = data[at];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGatherElements(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  ASSIGN_OR_RETURN(const ElementPlaces from, ElementPlacesOf(spec));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, from.dims}));
  const IndexReader reader = IndexReader::Of(spec, 1, from.data_dim, context);
  return ForSize(spec, dtype, [&, places = PlacesOf(from)](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (places.elements == 0) return absl::OkStatus();
      return Launch(GatherElements<T>, BlocksFor(places.elements), kThreads, stream, Input<T>(arguments, 0),
                    arguments.inputs[1], Output<T>(arguments, 0), places, reader);
    });
  });
}

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  registry.Add("Gather", "", PrepareGather);
  registry.Add("GatherElements", "", PrepareGatherElements);
  registry.Add("GatherND", "", PrepareGatherNd);
}

}  // namespace pipec::cuda
