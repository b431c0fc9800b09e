// Streams that capture a graph instead of running (the CUDA programming guide, "Creating a Graph Using Stream
// Capture").
#pragma once

#include <driver_types.h>

#include <functional>
#include <string>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {

// The mode that cudaThreadExchangeStreamCaptureMode gave the calling host thread.
cudaStreamCaptureMode& ThreadCaptureMode();

// Gives work to a stream: to its queue, or to the graph it captures. Errors: the stream's capture is invalid; the
// legacy stream is used while a blocking stream captures.
cudaError_t Submit(Machine& machine, CUstream_st& stream, std::string name, cudaGraphNodeType type, Work work,
                   std::function<bool()> may_run = {});

// Refuses what asks for the state of a stream that captures, and ends its capture.
cudaError_t RefuseOfCapturing(Machine& machine, CUstream_st& stream, const char* name);

}  // namespace cuda_emulation
