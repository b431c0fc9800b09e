// Doubles of the calls that give and take memory.
#include <cuda_runtime_api.h>

#include <new>

#include "tests/cuda_emulation/call.h"

namespace cuda_emulation {
namespace {

cudaError_t Allocate(Machine& machine, void** pointer, size_t bytes, int device) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (device >= 0 && machine.memory.bytes_of(device) + bytes > machine.device_bytes)
    return cudaErrorMemoryAllocation;
  try {
    *pointer = machine.memory.Add(bytes, device).begin();
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

cudaError_t Free(Machine& machine, const char* name, void* pointer, bool pinned) {
  if (!pointer) return cudaSuccess;
  if (const std::optional<cudaError_t> refused = RefuseInCapture(machine, name)) return *refused;
  const Allocation* memory = machine.memory.Find(reinterpret_cast<uintptr_t>(pointer));
  if (!memory || memory->begin() != pointer || (memory->device() < 0) != pinned) {
    return machine.Refuse(cudaErrorInvalidValue,
                          std::string(name) + " of what is no live memory of its kind");
  }
  // CUDA waits here for all work, or does not, as it likes; nothing should rest on that. What runs later and goes
  // there is at fault.
  machine.memory.Remove(pointer, !machine.scheduler.Idle());
  return cudaSuccess;
}

}  // namespace

extern "C" cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return UnsafeCall("cudaMalloc", [&](Machine& machine, auto&) {
    return Allocate(machine, pointer, bytes, CurrentDevice());
  });
}

extern "C" cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return UnsafeCall("cudaHostAlloc",
                    [&](Machine& machine, auto&) { return Allocate(machine, pointer, bytes, -1); });
}

extern "C" cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return UnsafeCall("cudaMallocHost",
                    [&](Machine& machine, auto&) { return Allocate(machine, pointer, bytes, -1); });
}

extern "C" cudaError_t cudaFree(void* pointer) {
  return ReleaseCall("cudaFree",
                     [&](Machine& machine, bool) { return Free(machine, "cudaFree", pointer, false); });
}

extern "C" cudaError_t cudaFreeHost(void* pointer) {
  return ReleaseCall("cudaFreeHost",
                     [&](Machine& machine, bool) { return Free(machine, "cudaFreeHost", pointer, true); });
}

extern "C" cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return Call("cudaMemGetInfo", [&](Machine& machine, auto&) {
    *total = machine.device_bytes;
    *free = *total - machine.memory.bytes_of(CurrentDevice());
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
