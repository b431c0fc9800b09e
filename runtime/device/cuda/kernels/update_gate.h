// Whether kernels that change what training keeps may do so (LaggingDevice).
#pragma once

#include <driver_types.h>

#include <cstdint>

#include "absl/status/status.h"

namespace pipec::cuda {

// 0: open. Read by such kernels, when they run.
using UpdateGate = int32_t;

// Enqueues: closes the gate if one of these (null: none) is NaN or infinite.
absl::Status CloseUnlessFinite(cudaStream_t stream, const double* a, const double* b, UpdateGate* gate);

}  // namespace pipec::cuda
