// Pad, Trilu, OneHot, EyeLike, ReverseSequence, TensorScatter: elements whose place, or whether they are kept, is
// reckoned.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/look_up_copy.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/strided_copy.h"
#include "runtime/device/cuda/kernels/units.cuh"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/one_hot.h"
#include "runtime/device/operands/pad.h"
#include "runtime/device/operands/reverse_sequence.h"
#include "runtime/device/operands/tensor_scatter.h"

namespace pipec::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMirrorPad(const KernelSpec& spec, const PadOperands& operands,
                                                         CudaContext& context) {
  const Shape& x = spec.inputs[0].type.shape;
  return MakeLookUpCopy(spec, context, [&](int axis, int64_t at) {
    return PlaceInside(operands.mode(), at - operands.padding().before[axis], x[axis]);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PreparePad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const PadOperands operands, PadOperands::Of(spec));
  if (!operands.known()) {
    return absl::UnimplementedError(
        absl::StrCat("node '", spec.name, "' (Pad): the CUDA device needs padding that is known at load"));
  }
  if (operands.mode() != PadMode::kConstant) return PrepareMirrorPad(spec, operands, context);
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const PadKept kept = KeptOf(x.shape, y.shape, operands.padding());
  ASSIGN_OR_RETURN(
      const StridedCopy copy,
      StridedCopy::Of(spec, x.dtype, {kept.shape, Strides(x.shape), Strides(y.shape), kept.from, kept.to}));
  ASSIGN_OR_RETURN(const StridedCopy fill, StridedCopy::Of(spec, x.dtype, {{y.elements()}, {0}, {1}}));
  return MakeKernel(0,
                    [copy, fill, bytes = y.bytes(), has_value = Has(spec, 2)](
                        cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                      if (bytes == 0) return absl::OkStatus();
                      if (has_value) {
                        RETURN_IF_ERROR(fill.Run(stream, arguments.inputs[2], arguments.outputs[0]));
                      } else {
                        RETURN_IF_CUDA_ERROR(cudaMemsetAsync(arguments.outputs[0], 0, bytes, stream));
                      }
                      return copy.Run(stream, arguments.inputs[0], arguments.outputs[0]);
                    });
}

// Upper keeps columns from row + k on; lower up to and with row + k. 16 bytes at a time where rows are whole vectors.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kThreads)
    KeepTriangle(const T* x, T* y, const int64_t* k, int64_t rows, int64_t columns, int64_t all, bool upper) {
  const int64_t diagonal = k == nullptr ? 0 : *k;
  for (int64_t i = FirstItem(); i < all / kLanes; i += ItemStride()) {
    const int64_t line = i * kLanes / columns, column = i * kLanes - line * columns, row = line % rows;
    Vector<T, kLanes> vector = LoadElements<kLanes>(x + i * kLanes);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      // Of two terms, so that a k far outside does not overflow.
      const int64_t beyond = column + lane - row;
      if (upper ? beyond < diagonal : beyond > diagonal) vector.values[lane] = T(0);
    }
    StoreVector(y + i * kLanes, vector);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareTrilu(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 2}));
  const TensorType& x = spec.inputs[0].type;
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("input 0 is ", ToString(x), ", wanted matrices"));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kInt64, 1));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back(), all = x.elements();
  const bool upper = spec.attributes.Int("upper", 1) != 0, has_k = Has(spec, 1);
  return ForSize(spec, x.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (all == 0) return absl::OkStatus();
      constexpr int kLanes = Vector<T>::kSize;
      const T* const from = Input<T>(arguments, 0);
      T* const y = Output<T>(arguments, 0);
      const bool wide = columns % kLanes == 0 && Aligned(from) && Aligned(y);
      return Launch(wide ? KeepTriangle<T, kLanes> : KeepTriangle<T, 1>, BlocksFor(wide ? all / kLanes : all),
                    kThreads, stream, from, y, has_k ? Input<int64_t>(arguments, 1) : nullptr, rows, columns,
                    all, upper);
    });
  });
}

// indices are (outer, inner), the result (outer, depth, inner). An index outside [-depth, depth) is no error: its
// place gets the off value throughout.
template <typename T, typename I>
__global__ void __launch_bounds__(kThreads)
    MarkIndices(const I* indices, const T* values, T* y, int64_t elements, int64_t depth, int64_t inner) {
  const T off = values[0], on = values[1];
  for (int64_t i = FirstItem(); i < elements; i += ItemStride()) {
    const int64_t row = i / inner, outer = row / depth, own = row - outer * depth;
    const auto value = Widen(indices[outer * inner + (i - row * inner)]);
    int64_t index;
    if constexpr (std::is_integral_v<I>) {
      index = static_cast<int64_t>(value);
    } else {
      index = Saturated<int64_t>(value);
    }
    y[i] = (index == own || index == own - depth) ? on : off;
  }
}

template <typename D>
__global__ void CheckDepth(const D* depth, int64_t wanted, const FaultSite fault) {
  if (static_cast<int64_t>(*depth) != wanted) LeaveNote(fault, static_cast<int64_t>(*depth), 0);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareOneHot(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const OneHotSizes sizes, ReadOneHot(spec));
  const DType indices = spec.inputs[0].type.dtype, depth = spec.inputs[1].type.dtype,
              values = spec.inputs[2].type.dtype;
  const FaultSite fault = context.AddFaultSite(spec, "depth", absl::StrCat(sizes.depth, ", as output 0 has it"));
  return ForSize(spec, values, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ForTypes(TypeList<int64_t, int32_t, float>(), spec, indices, [&](auto index) {
      using I = typename decltype(index)::type;
      return ForTypes(TypeList<int64_t, int32_t, float>(), spec, depth, [=](auto number) {
        using D = typename decltype(number)::type;
        return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          RETURN_IF_ERROR(
              Launch(CheckDepth<D>, 1, 1, stream, Input<D>(arguments, 1), sizes.depth, fault));
          const int64_t all = sizes.outer * sizes.depth * sizes.inner;
          if (all == 0) return absl::OkStatus();
          return Launch(MarkIndices<T, I>, BlocksFor(all), kThreads, stream, Input<I>(arguments, 0),
                        Input<T>(arguments, 2), Output<T>(arguments, 0), all, sizes.depth, sizes.inner);
        });
      });
    });
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads) MarkDiagonal(T* y, int64_t rows, int64_t columns, int64_t k) {
  for (int64_t i = FirstItem(); i < rows * columns; i += ItemStride()) {
    const int64_t row = i / columns;
    y[i] = Narrow<T>(static_cast<Compute<T>>(i - row * columns - row == k ? 1 : 0));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareEyeLike(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  if (x.shape.size() != 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted a matrix"));
  const auto dtype = static_cast<DType>(spec.attributes.Int("dtype", static_cast<int64_t>(x.dtype)));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, x.shape}));
  const int64_t rows = x.shape[0], columns = x.shape[1], k = spec.attributes.Int("k", 0);
  return ForTypes(NumbersAndBool(), spec, dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (rows * columns == 0) return absl::OkStatus();
      return Launch(MarkDiagonal<T>, BlocksFor(rows * columns), kThreads, stream, Output<T>(arguments, 0),
                    rows, columns, k);
    });
  });
}

// Rows of `width` units; (batch, steps) or, if `time_first`, (steps, batch).
template <typename U>
__global__ void __launch_bounds__(kThreads)
    ReverseRows(const U* x, const int64_t* lengths, U* y, int64_t batch, int64_t steps, int64_t width,
                bool time_first, const FaultSite fault) {
  for (int64_t i = FirstItem(); i < batch * steps * width; i += ItemStride()) {
    const int64_t row = i / width, inner = time_first ? batch : steps;
    const int64_t sample = time_first ? row % inner : row / inner, t = time_first ? row / inner : row % inner;
    const int64_t length = lengths[sample];
    if (length < 0 || length > steps) {
      LeaveNote(fault, length, sample);
      continue;
    }
    const int64_t source = t < length ? length - 1 - t : t;
    const int64_t from = time_first ? source * inner + sample : sample * inner + source;
    y[i] = x[from * width + (i - row * width)];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareReverseSequence(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const ReversedSequences sequences, ReadReverseSequence(spec));
  const int64_t batch = sequences.batch, steps = sequences.steps, bytes = sequences.bytes;
  const FaultSite fault = context.AddFaultSite(spec, "sequence length", absl::StrCat("in [0,", steps, "]"));
  return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
    if (batch * steps * bytes == 0) return absl::OkStatus();
    const int64_t unit = UnitOf({bytes, AddressOf(arguments.inputs[0]), AddressOf(arguments.outputs[0])});
    return ForUnit(unit, [&](auto zero) {
      using U = decltype(zero);
      return Launch(ReverseRows<U>, BlocksFor(batch * steps * (bytes / unit)), kThreads, stream,
                    Input<U>(arguments, 0), Input<int64_t>(arguments, 1), Output<U>(arguments, 0), batch,
                    steps, bytes / unit, sequences.time_first, fault);
    });
  });
}

// The cache is (outer, length, inner), the update (outer, count, inner); outer / samples rows of a sample lie together.
struct Written {
  int64_t outer, length, count, width, rows_of_sample;  // width: of inner, in units
  int64_t last;                                         // index that may be written at
  FaultSite fault;
};
template <typename U>
__global__ void __launch_bounds__(kThreads)
    WriteUpdate(const U* update, const int64_t* starts, U* cache, const Written written) {
  for (int64_t i = FirstItem(); i < written.outer * written.count * written.width; i += ItemStride()) {
    const int64_t entry = i / written.width, row = entry / written.count,
                  sample = row / written.rows_of_sample;
    const int64_t start = starts == nullptr ? 0 : starts[sample];
    if (start < 0 || start > written.last) {
      LeaveNote(written.fault, start, sample);
      continue;
    }
    const int64_t place = (start + entry - row * written.count) % written.length;
    cache[(row * written.length + place) * written.width + (i - entry * written.width)] = update[i];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareTensorScatter(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const TensorScatterSizes sizes, ReadTensorScatter(spec));
  Written written{sizes.outer,   sizes.length, sizes.count, 0, sizes.outer / std::max<int64_t>(sizes.samples, 1),
                  sizes.last()};
  written.fault = context.AddFaultSite(spec, "write index", absl::StrCat("in [0,", sizes.last(), "]"));
  return MakeKernel(
      0,
      [=, all = spec.inputs[0].type.bytes(), indexed = Has(spec, 2)](
          cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
        if (all > 0 && arguments.inputs[0] != arguments.outputs[0]) {
          RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(arguments.outputs[0], arguments.inputs[0], all,
                                               cudaMemcpyDeviceToDevice, stream));
        }
        if (sizes.outer * sizes.count * sizes.bytes == 0) return absl::OkStatus();
        const int64_t unit = UnitOf({sizes.bytes, AddressOf(arguments.inputs[1]), AddressOf(arguments.outputs[0])});
        Written own = written;
        own.width = sizes.bytes / unit;
        return ForUnit(unit, [&](auto zero) {
          using U = decltype(zero);
          return Launch(WriteUpdate<U>, BlocksFor(own.outer * own.count * own.width), kThreads, stream,
                        Input<U>(arguments, 1), indexed ? Input<int64_t>(arguments, 2) : nullptr,
                        Output<U>(arguments, 0), own);
        });
      });
}

}  // namespace

void RegisterPlaceKernels(KernelRegistry& registry) {
  registry.Add("EyeLike", "", PrepareEyeLike);
  registry.Add("OneHot", "", PrepareOneHot);
  registry.Add("Pad", "", PreparePad);
  registry.Add("ReverseSequence", "", PrepareReverseSequence);
  registry.Add("TensorScatter", "", PrepareTensorScatter);
  registry.Add("Trilu", "", PrepareTrilu);
}

}  // namespace pipec::cuda
