// GatherElements (data, indices) -> (Y) and ScatterElements (data, indices,
// updates) -> (Y): indices replace one coordinate of an element's place.
// Several updates of one place are made in the order of the indices, whatever
// the number of threads.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/indices.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/scatter_ops.h"
#include "runtime/device/operands/gather.h"

namespace pipec::cpu {
namespace {

int64_t LineGrain(const ElementPlaces &places) {
  return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, places.length()));
}

using GatherLoop = void (*)(const ElementPlaces &places, const void *data, const void *indices, void *y);

template <typename T, typename I>
void Gather(const ElementPlaces &places, const void *data, const void *indices, void *y) {
  const int64_t step = places.step(), data_step = places.data_strides[places.axis];
  ParallelFor(places.lines, LineGrain(places), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const auto [at, data_at] = places.Begin(line);
      const T *const from = static_cast<const T *>(data) + data_at;
      for (int64_t i = 0; i < places.length(); ++i) {
        const int64_t index = static_cast<const I *>(indices)[at + i * step];
        static_cast<T *>(y)[at + i * step] = from[(index < 0 ? index + places.data_dim : index) * data_step];
      }
    }
  });
}

template <typename I>
absl::Status CheckAll(const ElementPlaces &places, const KernelArguments &arguments) {
  return CheckIndices(Input<I>(arguments, 1), NumElements(places.dims), {places.data_dim});
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGather(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  ASSIGN_OR_RETURN(const ElementPlaces places, ElementPlacesOf(spec));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, places.dims}));
  const bool wide = spec.inputs[1].type.dtype == DType::kInt64;
  const auto loop = ForSize<GatherLoop>(SizeOf(dtype), [wide](auto t) -> GatherLoop {
    using T = typename decltype(t)::type;
    return wide ? Gather<T, int64_t> : Gather<T, int32_t>;
  });
  if (loop == nullptr) return NoKernelFor(spec, dtype);
  return MakeKernel(0, [=](const KernelArguments &arguments) {
    RETURN_IF_ERROR(wide ? CheckAll<int64_t>(places, arguments) : CheckAll<int32_t>(places, arguments));
    loop(places, arguments.inputs[0], arguments.inputs[1], arguments.outputs[0]);
    return absl::OkStatus();
  });
}

using ScatterLoop = void (*)(const ElementPlaces &places, const void *indices, const void *updates, void *y);

template <typename Op, typename T, typename I>
void Scatter(const ElementPlaces &places, const void *indices, const void *updates, void *y) {
  const int64_t step = places.step(), data_step = places.data_strides[places.axis];
  ParallelFor(places.lines, LineGrain(places), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const auto [at, data_at] = places.Begin(line);
      T *const to = static_cast<T *>(y) + data_at;
      for (int64_t i = 0; i < places.length(); ++i) {
        const int64_t index = static_cast<const I *>(indices)[at + i * step];
        T &element = to[(index < 0 ? index + places.data_dim : index) * data_step];
        element = Op::Of(element, static_cast<const T *>(updates)[at + i * step]);
      }
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareScatter(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType &data = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const ElementPlaces places, ElementPlacesOf(spec));
  RETURN_IF_ERROR(CheckInput(spec, 2, {data.dtype, places.dims}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, data));
  const bool wide = spec.inputs[1].type.dtype == DType::kInt64;
  ASSIGN_OR_RETURN(const ScatterLoop loop,
                   ForUpdate<ScatterLoop>(spec, data.dtype, [wide](auto op, auto t) -> ScatterLoop {
                     using T = typename decltype(t)::type;
                     return wide ? Scatter<decltype(op), T, int64_t> : Scatter<decltype(op), T, int32_t>;
                   }));
  return MakeKernel(0, [=, bytes = data.bytes()](const KernelArguments &arguments) {
    RETURN_IF_ERROR(wide ? CheckAll<int64_t>(places, arguments) : CheckAll<int32_t>(places, arguments));
    CopyBytes(arguments.inputs[0], arguments.outputs[0], bytes);
    loop(places, arguments.inputs[1], arguments.inputs[2], arguments.outputs[0]);
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterGatherElementsKernels(KernelRegistry &registry) {
  registry.Add("GatherElements", "", PrepareGather);
  registry.Add("ScatterElements", "", PrepareScatter);
}

}  // namespace pipec::cpu
