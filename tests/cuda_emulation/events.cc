// Doubles of the calls about events.
#include <cuda_runtime_api.h>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/waiting.h"

namespace cuda_emulation {
namespace {

template <typename Body>
cudaError_t EventCall(const char* name, cudaEvent_t event, Body&& body) {
  return Call(name, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    if (!machine.events.Has(event))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            std::string(name) + " of an event that lives no more");
    return body(machine, lock);
  });
}

cudaError_t CreateEvent(const char* name, cudaEvent_t* event, unsigned flags) {
  return Call(name, [&](Machine& machine, auto&) {
    if (flags & ~static_cast<unsigned>(cudaEventDisableTiming | cudaEventBlockingSync)) {
      return machine.Refuse(cudaErrorInvalidValue, "an event of flags that the emulation does not know");
    }
    *event = machine.events.Add({CurrentDevice(), flags});
    return cudaSuccess;
  });
}

std::optional<cudaError_t> RefuseAsking(Machine& machine, const CUevent_st& event, const char* name) {
  if (event.capture) {
    event.capture->valid = false;
    return machine.Refuse(cudaErrorCapturedEvent,
                          std::string(name) + " of an event last recorded in a capture");
  }
  return RefuseInCapture(machine, name);
}

}  // namespace

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return CreateEvent("cudaEventCreateWithFlags", event, flags);
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return CreateEvent("cudaEventCreate", event, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ReleaseCall("cudaEventDestroy", [&](Machine& machine, bool) {
    if (!machine.events.Has(event))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaEventDestroy of an event that lives no more");
    machine.events.Remove(event);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return EventCall("cudaEventRecord", event, [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle, "cudaEventRecord on a stream that lives no more");
    if (stream->device != event->device) {
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "an event of device " + std::to_string(event->device) + " is recorded on " +
                                stream->name + " of device " + std::to_string(stream->device));
    }
    if (stream->capture) {
      if (!stream->capture->valid)
        return machine.Refuse(cudaErrorStreamCaptureInvalidated,
                              "cudaEventRecord on " + stream->name + ", whose capture is invalid");
      event->recorded = nullptr;
      event->capture = stream->capture;
      event->frontier = stream->frontier;
      return cudaSuccess;
    }
    event->capture = nullptr;
    event->frontier.clear();
    event->recorded = machine.scheduler.Enqueue(*stream, "an event", {});
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t event) {
  return EventCall("cudaEventQuery", event, [&](Machine& machine, auto& lock) {
    if (const auto refused = RefuseAsking(machine, *event, "cudaEventQuery")) return *refused;
    return Ask(machine, event->recorded, event->device, lock);
  });
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return EventCall("cudaEventSynchronize", event, [&](Machine& machine, auto& lock) {
    if (const auto refused = RefuseAsking(machine, *event, "cudaEventSynchronize")) return *refused;
    return WaitFor(machine, event->recorded, lock);
  });
}

// There is no time here: a microsecond for every operation between.
extern "C" cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return EventCall("cudaEventElapsedTime", start, [&](Machine& machine, auto&) {
    if (!machine.events.Has(end))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaEventElapsedTime of an event that lives no more");
    for (const CUevent_st* event : {start, end}) {
      if (event->flags & cudaEventDisableTiming || !event->recorded || event->device != start->device) {
        return machine.Refuse(
            cudaErrorInvalidResourceHandle,
            "cudaEventElapsedTime of an event without time, never recorded or of another device");
      }
      if (!event->recorded->done) return cudaErrorNotReady;
    }
    *milliseconds =
        1e-3f * (static_cast<int64_t>(end->recorded->run) - static_cast<int64_t>(start->recorded->run));
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
