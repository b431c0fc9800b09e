// Transpose.
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

void RegisterTransposeKernels(KernelRegistry& registry) {
  registry.Add("Transpose", "", PrepareCopy<TransposeMove>);
}

}  // namespace pipec::cpu
