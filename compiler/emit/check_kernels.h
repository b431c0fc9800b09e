// A plan whose instructions nobody can run must not be written.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Unimplemented, naming node, op and opset, if a rank is to run an op that has a kernel on no device
// (runtime/device/ops.def).
absl::Status CheckKernels(const Module& module);

}  // namespace pipec
