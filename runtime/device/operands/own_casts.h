// Ops that compute in float32 and cast 16-bit floats themselves, where they have the attribute `to`: ops.def, CASTS.
#pragma once

#include "runtime/device/device.h"

namespace pipec {

bool HasOwnCasts(const KernelSpec& spec);

// What an op of that list computes in whose operand is of type `operand`.
DType ComputedType(const KernelSpec& spec, DType operand);
// The type of its result 0.
DType CastResultType(const KernelSpec& spec, DType operand);

}  // namespace pipec
