// Doubles of the calls that copy and fill memory, and of host functions on streams.
#include <cuda_runtime_api.h>

#include <cstring>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/transfer.h"
#include "tests/cuda_emulation/waiting.h"

namespace cuda_emulation {
namespace {

// Pageable host memory is what the emulation knows nothing of.
bool Known(const Machine& machine, const void* pointer) {
  return machine.memory.Find(reinterpret_cast<uintptr_t>(pointer));
}

bool OnDevice(const Machine& machine, const void* pointer) {
  const Allocation* memory = machine.memory.Find(reinterpret_cast<uintptr_t>(pointer));
  return memory && memory->device() >= 0;
}

bool FitsKind(const Machine& machine, const void* to, const void* from, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !OnDevice(machine, to) && !OnDevice(machine, from);
    case cudaMemcpyHostToDevice:
      return OnDevice(machine, to) && !OnDevice(machine, from);
    case cudaMemcpyDeviceToHost:
      return !OnDevice(machine, to) && OnDevice(machine, from);
    case cudaMemcpyDeviceToDevice:
      return OnDevice(machine, to) && OnDevice(machine, from);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

// Pageable memory is read at the call, if the stream does not capture; pinned memory when the copy runs.
Work CopyWork(void* to, const void* from, size_t bytes, bool to_known, bool from_known, bool now) {
  std::shared_ptr<std::vector<std::byte>> staged;
  if (!from_known && now) {
    staged = std::make_shared<std::vector<std::byte>>(bytes);
    std::memcpy(staged->data(), from, bytes);
  }
  return [=](const Operation& operation) -> std::optional<Failure> {
    if (from_known) {
      if (auto failure = CheckCopy(operation, from, bytes, Access::kRead)) return failure;
    }
    if (to_known) {
      if (auto failure = CheckCopy(operation, to, bytes, Access::kWrite)) return failure;
    }
    std::memcpy(to, staged ? staged->data() : from, bytes);
    return std::nullopt;
  };
}

// Counts a copy that has no way but through the host.
void NoteWay(Machine& machine, const void* to, const void* from) {
  const Allocation* const target = machine.memory.Find(reinterpret_cast<uintptr_t>(to));
  const Allocation* const source = machine.memory.Find(reinterpret_cast<uintptr_t>(from));
  if (!target || !source || target->device() < 0 || source->device() < 0) return;
  const bool reaches = machine.MayReach(target->device(), source->device()) ||
                       machine.MayReach(source->device(), target->device());
  machine.copies_by_host += !reaches;
}

cudaError_t Copy(Machine& machine, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 CUstream_st* stream, std::unique_lock<std::mutex>& lock, bool wait) {
  if (!stream) return machine.Refuse(cudaErrorInvalidResourceHandle, "a copy on a stream that lives no more");
  if (bytes == 0) return cudaSuccess;
  if (!FitsKind(machine, to, from, kind)) {
    return machine.Refuse(cudaErrorInvalidValue,
                          "a copy of " + std::to_string(bytes) +
                              " bytes whose addresses are not of the kind it names, or of no live memory");
  }
  const auto first = reinterpret_cast<uintptr_t>(from), target = reinterpret_cast<uintptr_t>(to);
  if (first < target + bytes && target < first + bytes) {
    return machine.Refuse(cudaErrorInvalidValue,
                          "a copy of " + std::to_string(bytes) + " bytes between ranges that overlap");
  }
  NoteWay(machine, to, from);
  const bool to_known = Known(machine, to);
  const bool from_known = Known(machine, from);
  // Of pageable memory cudaMemcpy waits for what the stream had to do before, and comes back when the bytes are
  // staged; they may be on their way ("API synchronization behavior" of the runtime's documents).
  if (wait && !from_known && OnDevice(machine, to)) {
    if (const cudaError_t before = WaitFor(machine, stream->last, lock); before != cudaSuccess) return before;
    wait = false;
  }
  const cudaError_t error =
      Submit(machine, *stream, "a copy of " + std::to_string(bytes) + " bytes", cudaGraphNodeTypeMemcpy,
             CopyWork(to, from, bytes, to_known, from_known, !stream->capture));
  // A copy to pageable memory comes back when it is done.
  if (error != cudaSuccess || stream->capture || (to_known && !wait)) return error;
  return WaitFor(machine, stream->last, lock);
}

cudaError_t Fill(Machine& machine, void* to, int value, size_t bytes, CUstream_st* stream) {
  if (!stream)
    return machine.Refuse(cudaErrorInvalidResourceHandle, "a memset on a stream that lives no more");
  if (bytes == 0) return cudaSuccess;
  if (!Known(machine, to)) return machine.Refuse(cudaErrorInvalidValue, "a memset of no live memory");
  return Submit(machine, *stream, "a memset of " + std::to_string(bytes) + " bytes", cudaGraphNodeTypeMemset,
                [=](const Operation& operation) -> std::optional<Failure> {
                  if (auto failure = CheckRange(operation, to, bytes, Access::kWrite)) return failure;
                  std::memset(to, value, bytes);
                  return std::nullopt;
                });
}

}  // namespace

extern "C" cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return Call("cudaMemcpyAsync", [&](Machine& machine, auto& lock) {
    return Copy(machine, to, from, bytes, kind, machine.StreamOf(stream), lock, false);
  });
}

// On the legacy stream, which no capture of a blocking stream suffers; waits, but for what is staged.
extern "C" cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return UnsafeCall("cudaMemcpy", [&](Machine& machine, auto& lock) {
    return Copy(machine, to, from, bytes, kind, machine.StreamOf(nullptr), lock, true);
  });
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                           size_t bytes, cudaStream_t handle) {
  return Call("cudaMemcpyPeerAsync", [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle, "a copy on a stream that lives no more");
    const Allocation* target = machine.memory.Find(reinterpret_cast<uintptr_t>(to));
    const Allocation* source = machine.memory.Find(reinterpret_cast<uintptr_t>(from));
    if (!target || !source || target->device() != to_device || source->device() != from_device) {
      return machine.Refuse(cudaErrorInvalidValue,
                            "cudaMemcpyPeerAsync of memory that is not of the devices it names");
    }
    if (bytes == 0) return cudaSuccess;
    NoteWay(machine, to, from);
    return Submit(machine, *stream, "a copy of " + std::to_string(bytes) + " bytes between devices",
                  cudaGraphNodeTypeMemcpy, CopyWork(to, from, bytes, true, true, false));
  });
}

extern "C" cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return Call("cudaMemsetAsync", [&](Machine& machine, auto&) {
    return Fill(machine, to, value, bytes, machine.StreamOf(stream));
  });
}

extern "C" cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return UnsafeCall("cudaMemset", [&](Machine& machine, auto&) {
    return Fill(machine, to, value, bytes, machine.StreamOf(nullptr));
  });
}

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return Call("cudaLaunchHostFunc", [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle, "a host function on a stream that lives no more");
    return Submit(machine, *stream, "a host function", cudaGraphNodeTypeHost,
                  [=](const Operation&) -> std::optional<Failure> {
                    InHostFunction() = true;
                    function(argument);
                    InHostFunction() = false;
                    return std::nullopt;
                  });
  });
}

}  // namespace cuda_emulation
