// cudaLaunchKernel of a kernel whose parameter types are known: wins over the toolkit's template.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <tuple>
#include <utility>

#include "tests/cuda_emulation/launch_kernel.h"

// The arguments are the host's memory, which a kernel must not touch: what reads them is not checked.
#define CUDA_EMULATION_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))

namespace cuda_emulation {

// Runs a kernel as the present thread.
template <typename... P>
struct Kernel {
  void (*function)(P...);
  std::tuple<P...> arguments;

  CUDA_EMULATION_UNCHECKED static void Run(const void* kernel) {
    static_cast<const Kernel*>(kernel)->Call(std::index_sequence_for<P...>());
  }
  template <size_t... i>
  CUDA_EMULATION_UNCHECKED void Call(std::index_sequence<i...>) const {
    function(std::get<i>(arguments)...);
  }
};

template <typename... P, size_t... i>
Kernel<P...> WithArguments(void (*function)(P...), void** arguments, std::index_sequence<i...>) {
  return {function, {*static_cast<P*>(arguments[i])...}};
}

}  // namespace cuda_emulation

template <typename... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  using cuda_emulation::Kernel;
  return cuda_emulation::LaunchKernel(reinterpret_cast<const void*>(kernel), &Kernel<P...>::Run,
                                      std::make_shared<const Kernel<P...>>(cuda_emulation::WithArguments(
                                          kernel, arguments, std::index_sequence_for<P...>())),
                                      grid, block, shared_bytes, stream);
}
