// float16 and bfloat16 on a device that computes in float32: one way for every
// op. The operands are converted to float32 in the workspace, the op's float32
// kernel runs there, and its results are rounded, once.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cpu/kernel_registry.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// Whether an operand or result that is there has such elements.
bool HasSmallFloats(const KernelSpec &spec);

// The kernel that `prepare` makes for the instruction with float32 in their
// place. Contents known at load are converted then. An output that lies where
// an input lies does so in float32 too.
absl::StatusOr<std::unique_ptr<Kernel>>
MakeWidenedKernel(const KernelSpec &spec, PrepareFunction prepare);

} // namespace pipec::cpu
