#include "tests/cuda_emulation/capture.h"

#include <algorithm>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/operands.h"

namespace cuda_emulation {
namespace {

// The legacy stream stands for all blocking streams, so it must not be used while one of them captures.
cudaError_t RefuseLegacy(Machine& machine, const CUstream_st& stream) {
  if (machine.streams.Has(&stream)) return cudaSuccess;
  for (const auto& capture : machine.captures) {
    for (const CUstream_st* other : capture->streams) {
      if (other->flags & cudaStreamNonBlocking || other->device != stream.device) continue;
      capture->valid = false;
      return machine.Refuse(cudaErrorStreamCaptureImplicit,
                            "the legacy stream is used while " + other->name + " is capturing");
    }
  }
  return cudaSuccess;
}

// Whether every node that no other comes after is in the stream's past.
bool Joined(const Capture& capture, const CUstream_st& origin) {
  std::vector<bool> reached(capture.nodes.size(), false);
  for (int node : origin.frontier) reached[node] = true;
  for (size_t node = capture.nodes.size(); node-- > 0;) {
    if (!reached[node]) return false;
    for (int earlier : capture.nodes[node].after) reached[earlier] = true;
  }
  return true;
}

void EndCapture(Machine& machine, const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* stream : capture->streams) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  machine.captures.erase(capture);
}

}  // namespace

cudaStreamCaptureMode& ThreadCaptureMode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t Submit(Machine& machine, CUstream_st& stream, std::string name, cudaGraphNodeType type, Work work,
                   std::function<bool()> may_run) {
  if (!stream.capture) {
    if (const cudaError_t error = RefuseLegacy(machine, stream); error != cudaSuccess) return error;
    machine.scheduler.Enqueue(stream, std::move(name), std::move(work), std::move(may_run),
                              DeclaredOperands());
    return cudaSuccess;
  }
  Capture& capture = *stream.capture;
  if (!capture.valid) {
    return machine.Refuse(cudaErrorStreamCaptureInvalidated,
                          name + " on " + stream.name + ", whose capture is invalid");
  }
  capture.nodes.push_back({std::move(name) + " in a graph", type, stream.device, std::move(work),
                           std::move(may_run), DeclaredOperands(), stream.frontier});
  stream.frontier = {static_cast<int>(capture.nodes.size()) - 1};
  return cudaSuccess;
}

cudaError_t RefuseOfCapturing(Machine& machine, CUstream_st& stream, const char* name) {
  stream.capture->valid = false;
  return machine.Refuse(cudaErrorStreamCaptureUnsupported,
                        std::string(name) + " of " + stream.name + ", which is capturing");
}

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return Call("cudaThreadExchangeStreamCaptureMode", [&](Machine&, auto&) {
    std::swap(*mode, ThreadCaptureMode());
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return Call("cudaStreamBeginCapture", [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaStreamBeginCapture of a stream that lives no more");
    if (stream != handle)
      return machine.Refuse(cudaErrorStreamCaptureUnsupported, "the legacy stream cannot capture");
    if (stream->capture) return machine.Refuse(cudaErrorIllegalState, stream->name + " is capturing already");
    static unsigned long long captures = 0;
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->id = ++captures;
    capture->streams.insert(stream);
    machine.captures.insert(capture);
    stream->capture = capture;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return ReleaseCall("cudaStreamEndCapture", [&](Machine& machine, bool failed) {
    *graph = nullptr;
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream || !stream->capture)
      return machine.Refuse(cudaErrorIllegalState, "cudaStreamEndCapture of a stream that does not capture");
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture->origin != stream) {
      capture->valid = false;
      return machine.Refuse(
          cudaErrorStreamCaptureUnmatched,
          "the capture began on " + capture->origin->name + ", cudaStreamEndCapture names " + stream->name);
    }
    if (capture->thread != std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed) {
      return machine.Refuse(cudaErrorStreamCaptureWrongThread,
                            "a capture ends in another host thread than began it");
    }
    const bool joined = Joined(*capture, *stream);
    EndCapture(machine, capture);
    if (!capture->valid)
      return machine.Refuse(cudaErrorStreamCaptureInvalidated,
                            "the capture of " + stream->name + " is invalid");
    if (!joined) {
      return machine.Refuse(
          cudaErrorStreamCaptureUnjoined,
          "the capture of " + stream->name + " ends before it has waited for all streams that took part");
    }
    if (!failed) *graph = machine.graphs.Add({std::move(capture->nodes)});
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return Call("cudaStreamIsCapturing", [&](Machine& machine, auto&) {
    const CUstream_st* stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaStreamIsCapturing of a stream that lives no more");
    *status = !stream->capture         ? cudaStreamCaptureStatusNone
              : stream->capture->valid ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
