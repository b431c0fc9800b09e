// GatherND (data, indices) -> (Y) and ScatterND (data, indices, updates) ->
// (Y): the last axis of indices holds the first coordinates of a slice of data.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/indices.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/scatter_ops.h"
#include "runtime/device/operands/gather.h"

namespace pipec::cpu {
namespace {

absl::Status CheckTuples(const TupleSlices &slices, const int64_t *indices) {
  return CheckIndices(indices, slices.batch * slices.tuples * static_cast<int64_t>(slices.dims.size()),
                      slices.dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGather(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  if (SizeOf(dtype) == 0) return NoKernelFor(spec, dtype);
  Shape gathered;
  ASSIGN_OR_RETURN(const TupleSlices slices,
                   TupleSlicesOf(spec, spec.attributes.Int("batch_dims", 0), &gathered));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, gathered}));
  const int64_t bytes = slices.slice * SizeOf(dtype);
  return MakeKernel(0, [=](const KernelArguments &arguments) {
    const auto *const data = Input<std::byte>(arguments, 0);
    const int64_t *const indices = Input<int64_t>(arguments, 1);
    auto *const y = Output<std::byte>(arguments, 0);
    if (bytes == 0) return absl::OkStatus();
    RETURN_IF_ERROR(CheckTuples(slices, indices));
    const int64_t tuple = static_cast<int64_t>(slices.dims.size()), places = slices.places();
    ParallelFor(slices.batch * slices.tuples, std::max<int64_t>(1, 4 * kElementGrain / bytes),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t place = row / slices.tuples * places + slices.At(indices + row * tuple);
                    std::memcpy(y + row * bytes, data + place * bytes, bytes);
                  }
                });
    return absl::OkStatus();
  });
}

using ScatterLoop = void (*)(const TupleSlices &slices, const int64_t *indices, const void *updates, void *y);

// Threads share out the columns of the slices, so that updates of one place are
// made in the order of the indices.
template <typename Op, typename T>
void Scatter(const TupleSlices &slices, const int64_t *indices, const void *updates, void *y) {
  const int64_t tuple = static_cast<int64_t>(slices.dims.size()), n = slices.slice;
  ParallelFor(n, std::max<int64_t>(64, kElementGrain / std::max<int64_t>(slices.tuples, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = 0; row < slices.tuples; ++row) {
                  T *const to = static_cast<T *>(y) + slices.At(indices + row * tuple) * n;
                  const T *const from = static_cast<const T *>(updates) + row * n;
                  for (int64_t i = begin; i < end; ++i) to[i] = Op::Of(to[i], from[i]);
                }
              });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareScatter(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType &data = spec.inputs[0].type;
  Shape wanted;
  ASSIGN_OR_RETURN(const TupleSlices slices, TupleSlicesOf(spec, 0, &wanted));
  RETURN_IF_ERROR(CheckInput(spec, 2, {data.dtype, wanted}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, data));
  ASSIGN_OR_RETURN(const ScatterLoop loop,
                   ForUpdate<ScatterLoop>(spec, data.dtype, [](auto op, auto t) -> ScatterLoop {
                     return Scatter<decltype(op), typename decltype(t)::type>;
                   }));
  return MakeKernel(0, [=, bytes = data.bytes()](const KernelArguments &arguments) {
    if (slices.slice > 0) RETURN_IF_ERROR(CheckTuples(slices, Input<int64_t>(arguments, 1)));
    CopyBytes(arguments.inputs[0], arguments.outputs[0], bytes);
    loop(slices, Input<int64_t>(arguments, 1), arguments.inputs[2], arguments.outputs[0]);
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterGatherNdKernels(KernelRegistry &registry) {
  registry.Add("GatherND", "", PrepareGather);
  registry.Add("ScatterND", "", PrepareScatter);
}

}  // namespace pipec::cpu
