// Identity, Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order. The compiler makes
// views of these as a rule; where it cannot, they are copies.
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

template <absl::Status (*kCheck)(const KernelSpec&)>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(kCheck(spec));
  const TensorType& x = spec.inputs[0].type;
  return std::make_unique<CopyKernel>(CopyOf(x.dtype, {{x.elements()}, {1}, {1}}));
}

}  // namespace

void RegisterReshapeKernels(KernelRegistry& registry) {
  registry.Add("Flatten", "", Prepare<CheckFlatten>);
  registry.Add("Identity", "", Prepare<CheckIdentity>);
  registry.Add("Reshape", "", Prepare<CheckReshape>);
  registry.Add("Squeeze", "", Prepare<CheckSqueeze>);
  registry.Add("Unsqueeze", "", Prepare<CheckUnsqueeze>);
}

}  // namespace pipec::cpu
