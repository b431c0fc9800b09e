// DepthToSpace and SpaceToDepth.
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

void RegisterDepthToSpaceKernels(KernelRegistry& registry) {
  registry.Add("DepthToSpace", "", PrepareCopy<DepthToSpaceMove>);
  registry.Add("SpaceToDepth", "", PrepareCopy<SpaceToDepthMove>);
}

}  // namespace pipec::cpu
