// float16 and bfloat16 for ops whose kernel keeps float32 between its steps: the operands are converted to float32 in the
// workspace, the float32 kernel runs there, and its results are rounded, once.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/kernel_registry.h"

namespace pipec::cuda {

// Whether operand 0 has such elements.
bool IsSmall(const KernelSpec& spec);

// The kernel that `prepare` makes for the instruction with float32 in their place. No result lies where an operand lies.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec& spec, CudaContext& context,
                                                          PrepareFunction prepare);

}  // namespace pipec::cuda
