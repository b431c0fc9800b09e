// The CUDA kernels (runtime/device/kernel_table.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/device.h"
#include "runtime/device/kernel_table.h"

namespace pipec::cuda {

// Unimplemented if there is no kernel for these types and attributes; InvalidArgument if the shapes are wrong.
using PrepareFunction = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec,
                                                                    CudaContext& context);
using KernelRegistry = KernelTable<PrepareFunction>;

// All CUDA kernels, built once.
const KernelRegistry& Kernels();

}  // namespace pipec::cuda
