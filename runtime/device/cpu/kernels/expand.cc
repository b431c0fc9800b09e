// Expand and Tile: the same elements more than once.
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

void RegisterExpandKernels(KernelRegistry& registry) {
  registry.Add("Expand", "", PrepareCopy<ExpandMove>);
  registry.Add("Tile", "", PrepareCopy<TileMove>);
}

}  // namespace pipec::cpu
