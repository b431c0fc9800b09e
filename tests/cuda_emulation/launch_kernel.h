// How a kernel becomes an operation.
#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <memory>

namespace cuda_emulation {

// `run(arguments)` runs the kernel as the present thread; `kernel` names it. Errors are cudaLaunchKernel's.
cudaError_t LaunchKernel(const void* kernel, void (*run)(const void*), std::shared_ptr<const void> arguments,
                         dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);

}  // namespace cuda_emulation
