#include "tests/cuda_emulation/launch_kernel.h"

#include <utility>

#include "tests/cuda_emulation/block.h"
#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/symbols.h"

namespace cuda_emulation {
namespace {

// Compute capability 5.0 and later (CUDA programming guide, table of technical specifications).
bool Allowed(dim3 grid, dim3 block) {
  const auto within = [](dim3 v, unsigned x, unsigned y, unsigned z) {
    return v.x >= 1 && v.x <= x && v.y >= 1 && v.y <= y && v.z >= 1 && v.z <= z;
  };
  return within(grid, 0x7fffffff, 65535, 65535) && within(block, 1024, 1024, 64) &&
         uint64_t{block.x} * block.y * block.z <= 1024;
}

std::string Name(dim3 v) {
  return std::to_string(v.x) + " x " + std::to_string(v.y) + " x " + std::to_string(v.z);
}

std::optional<Failure> RunBlocks(const Launch& launch, const Operation& operation) {
  Random& random = Machine::Get().random;
  std::vector<uint32_t> order(launch.grid.x * launch.grid.y * launch.grid.z);
  for (uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    std::swap(order[i], order[random.Below(i + 1)]);
  }
  for (const uint32_t i : order) {
    const uint3 index{i % launch.grid.x, i / launch.grid.x % launch.grid.y,
                      i / (launch.grid.x * launch.grid.y)};
    if (auto failure = Block(launch, index, operation, random).Run()) return failure;
  }
  return std::nullopt;
}

}  // namespace

cudaError_t LaunchKernel(const void* kernel, void (*run)(const void*), std::shared_ptr<const void> arguments,
                         dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t handle) {
  return Call("cudaLaunchKernel", [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    Launch launch{FunctionName(kernel), grid, block, run, std::move(arguments)};
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "kernel " + launch.kernel + " on a stream that lives no more");
    if (stream->device != CurrentDevice()) {
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "kernel " + launch.kernel + " is launched while device " +
                                std::to_string(CurrentDevice()) + " is current, on " + stream->name +
                                " of device " + std::to_string(stream->device));
    }
    if (!Allowed(grid, block)) {
      return machine.Refuse(
          cudaErrorInvalidConfiguration,
          "kernel " + launch.kernel + ": a grid of " + Name(grid) + " blocks of " + Name(block) + " threads");
    }
    if (shared_bytes != 0)
      return machine.Refuse(cudaErrorNotSupported,
                            "kernel " + launch.kernel + ": the emulation has no dynamic shared memory");
    static const std::string without_pads = ArraysWithoutPads();
    if (!without_pads.empty())
      return machine.Refuse(cudaErrorNotSupported,
                            "shared arrays without space around them: " + without_pads);
    std::string name = "kernel " + launch.kernel;
    return Submit(
        machine, *stream, std::move(name), cudaGraphNodeTypeKernel,
        [launch = std::move(launch)](const Operation& operation) { return RunBlocks(launch, operation); });
  });
}

}  // namespace cuda_emulation
