// TensorScatter (past cache, update, write indices?) -> (present cache): each
// sample's update is written into its cache from its index on, along the axis;
// mode circular goes on at the beginning.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/scatter_ops.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &cache = spec.inputs[0].type, &update = spec.inputs[1].type;
  if (SizeOf(cache.dtype) == 0) return NoKernelFor(spec, cache.dtype);
  const std::string mode = spec.attributes.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return Invalid(spec, absl::StrCat("mode is ", mode, ", wanted linear or circular"));
  }
  const int rank = static_cast<int>(cache.shape.size());
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", -2), rank);
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  TensorType wanted = cache;
  if (*axis == 0) return Invalid(spec, "axis 0 is the batch's");
  if (static_cast<int>(update.shape.size()) == rank) wanted.shape[*axis] = update.shape[*axis];
  RETURN_IF_ERROR(CheckInput(spec, 1, wanted));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, DType::kInt64, cache.shape[0]));
  RETURN_IF_ERROR(CheckOutput(spec, 0, cache));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(cache.shape, *axis));
  const int64_t length = wanted.shape[*axis], samples = cache.shape[0],
                bytes = view.inner * SizeOf(cache.dtype);
  if (length > view.length)
    return Invalid(spec, absl::StrCat("an update of ", length, " is longer than the cache"));
  const bool circular = mode == "circular", indexed = Has(spec, 2);
  return MakeKernel(0, [=, all = cache.bytes()](const KernelArguments &arguments) {
    const int64_t *const starts = indexed ? Input<int64_t>(arguments, 2) : nullptr;
    for (int64_t sample = 0; indexed && sample < samples; ++sample) {
      const int64_t most = circular ? view.length - 1 : view.length - length;
      if (starts[sample] < 0 || starts[sample] > most) {
        return absl::InvalidArgumentError(absl::StrCat("write index ", starts[sample], " of sample ", sample,
                                                       " is outside [0,", most, "]"));
      }
    }
    CopyBytes(arguments.inputs[0], arguments.outputs[0], all);
    for (int64_t row = 0; row < view.outer; ++row) {
      const int64_t start = indexed ? starts[row / (view.outer / samples)] : 0;
      for (int64_t i = 0; i < length; ++i) {
        std::memcpy(Output<std::byte>(arguments, 0) + (row * view.length + (start + i) % view.length) * bytes,
                    Input<std::byte>(arguments, 1) + (row * length + i) * bytes, bytes);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterTensorScatterKernels(KernelRegistry &registry) { registry.Add("TensorScatter", "", Prepare); }

}  // namespace pipec::cpu
