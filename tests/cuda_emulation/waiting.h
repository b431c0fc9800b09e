// The host waits for an operation, or asks whether it is done; both let operations run.
#pragma once

#include <driver_types.h>

#include <memory>
#include <mutex>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {

// The error of the operation's device, if its work ended with a fault. A null operation is done.
cudaError_t WaitFor(Machine& machine, const std::shared_ptr<Operation>& operation,
                    std::unique_lock<std::mutex>& lock);
// cudaErrorNotReady while it is not done. Where nothing can run, other host threads get a moment to enqueue something.
cudaError_t Ask(Machine& machine, const std::shared_ptr<Operation>& operation, int device,
                std::unique_lock<std::mutex>& lock);

}  // namespace cuda_emulation
