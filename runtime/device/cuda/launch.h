// How every kernel is launched. The arguments take the kernel's own parameter types, and the grid and stream are
// said in words rather than in <<< >>>, so that a file of kernels is C++ to any compiler.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/cuda_status.h"

namespace pipec {
namespace launch_internal {

template <typename... P, size_t... i>
absl::Status LaunchWith(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                        [[maybe_unused]] std::tuple<P...> values, std::index_sequence<i...>) {
  void* pointers[] = {static_cast<void*>(&std::get<i>(values))..., nullptr};
  const cudaError_t error = cudaLaunchKernel(kernel, grid, block, pointers, size_t{0}, stream);
  if (error == cudaSuccess) return absl::OkStatus();
  return CudaStatus(error, absl::StrCat("launching a kernel on ", grid.x, " x ", grid.y, " x ", grid.z,
                                        " blocks of ", block.x, " x ", block.y, " x ", block.z, " threads"));
}

}  // namespace launch_internal

// Enqueues `kernel(arguments...)` on the stream. Errors: what CUDA says, with the size of the launch.
template <typename... P, typename... A>
absl::Status Launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "a kernel's parameters have no defaults");
  return launch_internal::LaunchWith(kernel, grid, block, stream,
                                     std::tuple<P...>(std::forward<A>(arguments)...),
                                     std::index_sequence_for<P...>());
}

}  // namespace pipec
