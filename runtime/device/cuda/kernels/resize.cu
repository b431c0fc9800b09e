// Resize (X, roi?, scales?, sizes?) -> (Y), what it depends on being known at load: nearest looks each place up,
// the other modes interpolate the axes one after the other, in float32 and float64. Tables of the axes lie on the
// GPU.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/look_up_copy.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/resize.h"

namespace pipec::cuda {
namespace {

struct LookUp {
  int rank;
  int64_t elements;
  int64_t dims[kMaxRank], first[kMaxRank];  // where an axis begins in the table
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyLookedUp(const T* x, T* y, const int64_t* table, const LookUp look_up) {
  for (int64_t i = FirstItem(); i < look_up.elements; i += ItemStride()) {
    int64_t at = 0, rest = i;
    for (int axis = look_up.rank - 1; axis >= 0; --axis) {
      const int64_t next = rest / look_up.dims[axis];
      at += table[look_up.first[axis] + rest - next * look_up.dims[axis]];
      rest = next;
    }
    y[i] = x[at];
  }
}

// (outer, in, inner) to (outer, out, inner).
struct Axis {
  int64_t outer, in, out, inner, width;
  const int64_t* indices;  // [out, width]
  const double* weights;
};
template <typename T>
__global__ void __launch_bounds__(kThreads) Interpolate(const T* x, T* y, const Axis axis) {
  const int64_t all = axis.outer * axis.out * axis.inner;
  for (int64_t i = FirstItem(); i < all; i += ItemStride()) {
    const int64_t row = i / axis.inner, outer = row / axis.out, at = row - outer * axis.out;
    const T* const from = x + outer * axis.in * axis.inner + (i - row * axis.inner);
    T sum = 0;
    for (int64_t k = 0; k < axis.width; ++k) {
      const T weight = static_cast<T>(axis.weights[at * axis.width + k]);
      if (weight != T(0)) sum += weight * from[axis.indices[at * axis.width + k] * axis.inner];
    }
    y[i] = sum;
  }
}

// What lies outside of the operand along an axis.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    FillOutside(T* y, const uint8_t* outside, int64_t all, int64_t out, int64_t inner, T value) {
  for (int64_t i = FirstItem(); i < all; i += ItemStride()) {
    if (outside[i / inner % out]) y[i] = value;
  }
}

// An axis that changes, and one on which some places are outside.
struct Step {
  Axis axis;
  bool last;
};
struct Fill {
  const uint8_t* outside;
  int64_t out, inner;
};

template <typename V>
absl::StatusOr<const V*> KeepAll(CudaContext& context, const std::vector<V>& values) {
  ASSIGN_OR_RETURN(const void* const kept,
                   context.Keep(values.data(), static_cast<int64_t>(values.size() * sizeof(V))));
  return static_cast<const V*>(kept);
}

absl::StatusOr<std::vector<Step>> StepsOf(const Shape& x, const std::vector<ResizeTaps>& all,
                                          CudaContext& context) {
  std::vector<Step> steps;
  Shape shape = x;
  for (size_t i = 0; i < all.size(); ++i) {
    const ResizeTaps& taps = all[i];
    if (taps.identity()) continue;
    const auto dims = absl::MakeSpan(shape);
    Axis axis{NumElements(dims.first(i)), taps.in(), taps.out(), NumElements(dims.subspan(i + 1)),
              taps.width()};
    std::vector<int64_t> indices;
    std::vector<double> weights;
    for (int64_t at = 0; at < taps.out(); ++at) {
      for (int64_t k = 0; k < taps.width(); ++k) {
        indices.push_back(taps.index(at, k));
        weights.push_back(taps.weight(at, k));
      }
    }
    ASSIGN_OR_RETURN(axis.indices, KeepAll(context, indices));
    ASSIGN_OR_RETURN(axis.weights, KeepAll(context, weights));
    shape[i] = taps.out();
    steps.push_back({axis, false});
  }
  if (!steps.empty()) steps.back().last = true;
  return steps;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareInterpolation(const KernelSpec& spec,
                                                             const ResizeOperands& operands,
                                                             CudaContext& context) {
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  ASSIGN_OR_RETURN(const std::vector<Step> steps, StepsOf(x.shape, operands.taps(), context));
  std::vector<Fill> fills;
  for (size_t i = 0; i < operands.taps().size() && operands.crops(); ++i) {
    const ResizeTaps& taps = operands.taps()[i];
    std::vector<uint8_t> outside;
    for (int64_t at = 0; at < taps.out(); ++at) outside.push_back(taps.outside(at) ? 1 : 0);
    ASSIGN_OR_RETURN(const uint8_t* const kept, KeepAll(context, outside));
    fills.push_back({kept, taps.out(), NumElements(absl::MakeSpan(y.shape).subspan(i + 1))});
  }
  // Two tensors between the axes, each at most as large as the larger of both forms of every axis.
  int64_t most = SizeOf(x.dtype);
  for (const ResizeTaps& taps : operands.taps()) most *= std::max(taps.in(), taps.out());
  const int64_t room = (most + 63) / 64 * 64;
  return ForWideFloats(
      spec, x.dtype, [=, all = y.elements(), bytes = x.bytes(), value = operands.extrapolation()](auto tag) {
        using T = typename decltype(tag)::type;
        return MakeKernel(
            2 * room, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
              auto* const workspace = static_cast<std::byte*>(arguments.workspace);
              T* const y = Output<T>(arguments, 0);
              const T* from = Input<T>(arguments, 0);
              int next = 0;
              for (const Step& step : steps) {
                T* const to = step.last ? y : reinterpret_cast<T*>(workspace + next * room);
                const int64_t elements = step.axis.outer * step.axis.out * step.axis.inner;
                if (elements > 0) {
                  RETURN_IF_ERROR(
                      Launch(Interpolate<T>, BlocksFor(elements), kThreads, stream, from, to, step.axis));
                }
                from = to;
                next = 1 - next;
              }
              if (steps.empty() && bytes > 0)
                RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(y, from, bytes, cudaMemcpyDeviceToDevice, stream));
              for (const Fill& fill : fills) {
                if (all == 0) break;
                RETURN_IF_ERROR(Launch(FillOutside<T>, BlocksFor(all), kThreads, stream, y, fill.outside, all,
                                       fill.out, fill.inner, static_cast<T>(value)));
              }
              return absl::OkStatus();
            });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const ResizeOperands operands, ResizeOperands::Of(spec));
  if (!operands.known()) {
    return absl::UnimplementedError(absl::StrCat(
        "node '", spec.name, "' (Resize): the CUDA device needs scales or sizes that are known at load"));
  }
  if (operands.rule().mode != ResizeMode::kNearest || operands.crops())
    return PrepareInterpolation(spec, operands, context);
  return MakeLookUpCopy(spec, context,
                        [&](int axis, int64_t at) { return operands.taps()[axis].index(at, 0); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLookUpCopy(
    const KernelSpec& spec, CudaContext& context, const std::function<int64_t(int axis, int64_t at)>& place) {
  const Shape &x = spec.inputs[0].type.shape, &y = spec.outputs[0].type.shape;
  const Shape strides = Strides(x);
  LookUp look_up{.rank = static_cast<int>(y.size()), .elements = NumElements(y)};
  std::vector<int64_t> table;
  for (int axis = 0; axis < look_up.rank; ++axis) {
    look_up.dims[axis] = y[axis];
    look_up.first[axis] = static_cast<int64_t>(table.size());
    for (int64_t at = 0; at < y[axis]; ++at) table.push_back(place(axis, at) * strides[axis]);
  }
  ASSIGN_OR_RETURN(const int64_t* const kept, KeepAll(context, table));
  return ForSize(spec, spec.inputs[0].type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (look_up.elements == 0) return absl::OkStatus();
      return Launch(CopyLookedUp<T>, BlocksFor(look_up.elements), kThreads, stream, Input<T>(arguments, 0),
                    Output<T>(arguments, 0), kept, look_up);
    });
  });
}

void RegisterResizeKernels(KernelRegistry& registry) { registry.Add("Resize", "", Prepare); }

}  // namespace pipec::cuda
