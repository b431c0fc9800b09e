// TensorScatter (past cache, update, write indices?) -> (present cache): each
// sample's update is written into its cache from its index on, along the axis;
// mode circular goes on at the beginning.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/scatter_ops.h"
#include "runtime/device/operands/tensor_scatter.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const TensorScatterSizes sizes, ReadTensorScatter(spec));
  return MakeKernel(0, [sizes, indexed = Has(spec, 2),
                        all = spec.inputs[0].type.bytes()](const KernelArguments &arguments) {
    const int64_t *const starts = indexed ? Input<int64_t>(arguments, 2) : nullptr;
    for (int64_t sample = 0; indexed && sample < sizes.samples; ++sample) {
      if (starts[sample] < 0 || starts[sample] > sizes.last()) {
        return absl::InvalidArgumentError(absl::StrCat("write index ", starts[sample], " of sample ", sample,
                                                       " is outside [0,", sizes.last(), "]"));
      }
    }
    CopyBytes(arguments.inputs[0], arguments.outputs[0], all);
    for (int64_t row = 0; row < sizes.outer; ++row) {
      const int64_t start = indexed ? starts[row / (sizes.outer / sizes.samples)] : 0;
      for (int64_t i = 0; i < sizes.count; ++i) {
        const int64_t place = row * sizes.length + (start + i) % sizes.length;
        std::memcpy(Output<std::byte>(arguments, 0) + place * sizes.bytes,
                    Input<std::byte>(arguments, 1) + (row * sizes.count + i) * sizes.bytes, sizes.bytes);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterTensorScatterKernels(KernelRegistry &registry) { registry.Add("TensorScatter", "", Prepare); }

}  // namespace pipec::cpu
