// A plan whose instructions nobody can run must not be written.
#pragma once

#include "absl/status/status.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

// Unimplemented, naming node, op, opset and rank, if a rank is to run an op that its device has no kernel for
// (runtime/device/ops.def): the CUDA device's if `cluster` says the rank is a GPU, else any device's. cluster may
// be null.
absl::Status CheckKernels(const Module& module, const Cluster* cluster);

}  // namespace pipec
