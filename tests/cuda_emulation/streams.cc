// Doubles of the calls about streams.
#include <cuda_runtime_api.h>
#include <execinfo.h>

#include <algorithm>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/waiting.h"

namespace cuda_emulation {
namespace {

// Runs `body` with a live stream.
template <typename Body>
cudaError_t StreamCall(const char* name, cudaStream_t handle, Body&& body) {
  return Call(name, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            std::string(name) + " of a stream that lives no more");
    return body(machine, *stream, lock);
  });
}

cudaError_t CreateStream(const char* name, cudaStream_t* stream, unsigned flags, int priority) {
  return Call(name, [&](Machine& machine, auto&) {
    if (flags & ~static_cast<unsigned>(cudaStreamNonBlocking))
      return machine.Refuse(cudaErrorInvalidValue, "a stream of unknown flags");
    static int streams = 0;
    *stream = machine.streams.Add(
        {"stream " + std::to_string(++streams), CurrentDevice(), flags, priority, machine.NewChain()});
    return cudaSuccess;
  });
}

// A number of the place that a call returns to, and of its two callers' places.
uint64_t SiteOf(void* returns_to) {
  constexpr int kCallers = 3, kFrames = 12;
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  void** const own = std::find(frames, frames + count, returns_to);
  uint64_t site = 1;
  for (void** frame = own; frame < std::min(own + kCallers, frames + count); ++frame)
    site = site * 0x9E3779B97F4A7C15 + reinterpret_cast<uintptr_t>(*frame);
  return site;
}

// Whether all that a capture's nodes `later` come after, and they themselves, include `earlier`.
bool Includes(const std::vector<Node>& nodes, const std::vector<int>& later,
              const std::vector<int>& earlier) {
  std::vector<bool> included(nodes.size(), false);
  for (const int node : later) included[node] = true;
  for (size_t node = nodes.size(); node-- > 0;) {
    if (!included[node]) continue;
    for (const int before : nodes[node].after) included[before] = true;
  }
  return std::all_of(earlier.begin(), earlier.end(), [&](int node) { return included[node]; });
}

// Whether the stream's next operation would come after what the event marks without a wait, too.
bool InOrderAnyway(Machine& machine, const CUstream_st& stream, const CUevent_st& event) {
  if (event.capture)
    return stream.capture == event.capture && Includes(event.capture->nodes, stream.frontier, event.frontier);
  if (!event.recorded) return true;
  const Operation& marked = *event.recorded;
  return machine.scheduler.HostIsBehind(marked) ||
         (stream.last && stream.last->clock.Has(marked.chain, marked.position));
}

// What may not be asked of a stream that captures, nor of any while a capture forbids unsafe calls.
std::optional<cudaError_t> RefuseAsking(Machine& machine, CUstream_st& stream, const char* name) {
  if (stream.capture) return RefuseOfCapturing(machine, stream, name);
  return RefuseInCapture(machine, name);
}

}  // namespace

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return CreateStream("cudaStreamCreateWithPriority", stream, flags, priority);
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return CreateStream("cudaStreamCreateWithFlags", stream, flags, 0);
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return CreateStream("cudaStreamCreate", stream, cudaStreamDefault, 0);
}

// Returns at once; what is enqueued still runs.
extern "C" cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return ReleaseCall("cudaStreamDestroy", [&](Machine& machine, bool) {
    if (!machine.streams.Has(handle))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaStreamDestroy of a stream that lives no more");
    if (handle->capture) return RefuseOfCapturing(machine, *handle, "cudaStreamDestroy");
    machine.streams.Remove(handle);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return StreamCall("cudaStreamSynchronize", handle, [&](Machine& machine, CUstream_st& stream, auto& lock) {
    if (const auto refused = RefuseAsking(machine, stream, "cudaStreamSynchronize")) return *refused;
    return WaitFor(machine, stream.last, lock);
  });
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return StreamCall("cudaStreamQuery", handle, [&](Machine& machine, CUstream_st& stream, auto& lock) {
    if (const auto refused = RefuseAsking(machine, stream, "cudaStreamQuery")) return *refused;
    return Ask(machine, stream.last, stream.device, lock);
  });
}

extern "C" cudaError_t cudaDeviceSynchronize() {
  return Call("cudaDeviceSynchronize", [&](Machine& machine, auto& lock) {
    const int device = CurrentDevice();
    for (const auto& stream : machine.streams) {
      if (stream->device == device && stream->capture)
        return RefuseOfCapturing(machine, *stream, "cudaDeviceSynchronize");
    }
    std::vector<std::shared_ptr<Operation>> last{machine.LegacyStream(device).last};
    for (const auto& stream : machine.streams) {
      if (stream->device == device) last.push_back(stream->last);
    }
    for (const auto& operation : last) {
      if (const cudaError_t error = WaitFor(machine, operation, lock); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return StreamCall("cudaStreamGetDevice", handle, [&](Machine&, CUstream_st& stream, auto&) {
    *device = stream.device;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return StreamCall("cudaStreamGetFlags", handle, [&](Machine&, CUstream_st& stream, auto&) {
    *flags = stream.flags;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return Call("cudaDeviceGetStreamPriorityRange", [&](Machine&, auto&) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  const uint64_t site = SiteOf(__builtin_return_address(0));
  return StreamCall("cudaStreamWaitEvent", handle, [&](Machine& machine, CUstream_st& stream, auto&) {
    if (!machine.events.Has(event))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaStreamWaitEvent for an event that lives no more");
    if (flags != 0)
      return machine.Refuse(cudaErrorInvalidValue, "the emulation knows no flags of cudaStreamWaitEvent");
    if (!InOrderAnyway(machine, stream, *event)) machine.wait_sites.insert(site);
    if (site == machine.ignored_site) return cudaSuccess;
    if (event->capture) {
      if (!event->capture->valid || !machine.captures.count(event->capture)) {
        return machine.Refuse(cudaErrorCapturedEvent,
                              "a wait for an event of a capture that has ended or is invalid");
      }
      if (stream.capture && stream.capture != event->capture) {
        stream.capture->valid = event->capture->valid = false;
        return machine.Refuse(cudaErrorStreamCaptureMerge,
                              stream.name + " captures, and waits for an event of another capture");
      }
      if (&stream != handle) {
        event->capture->valid = false;
        return machine.Refuse(cudaErrorStreamCaptureImplicit,
                              "the legacy stream waits for an event of a capture");
      }
      stream.capture = event->capture;
      stream.capture->streams.insert(&stream);
      stream.frontier.insert(stream.frontier.end(), event->frontier.begin(), event->frontier.end());
      return cudaSuccess;
    }
    if (!event->recorded) return cudaSuccess;
    if (stream.capture) {
      stream.capture->valid = false;
      return machine.Refuse(cudaErrorStreamCaptureIsolation,
                            stream.name + " captures, and waits for an event outside of the capture");
    }
    machine.scheduler.Enqueue(stream, "a wait", {}, {}, nullptr, {event->recorded});
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
