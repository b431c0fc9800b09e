// A GPU of this host as a device: memory by one cudaMalloc a call, streams, events, kernels of kernels/.
#pragma once

#include <functional>
#include <memory>

#include "runtime/device/device.h"

namespace pipec {

class StepGraphs;  // step_graphs.h

// Where ranks meet whose steps are captured together: all of a process that exchange messages by events. Without
// `capture` every step is enqueued piece by piece (--no-graph).
std::shared_ptr<StepGraphs> NewStepGraphs(int ranks, bool capture);

// How many GPUs this process may use. Unavailable where there is none.
absl::StatusOr<int> CountGpus();

// GPU `ordinal` of this process. One rank's thread makes all calls of the device and of its kernels; several
// devices may be of the same GPU. Where no GPU is, every call that would need one is Unavailable and says so. Also
// implements LaggingDevice; without `graphs` nothing is captured.
std::unique_ptr<Device> MakeCudaDevice(int ordinal, std::shared_ptr<StepGraphs> graphs = nullptr);

// For transports: while the rank's thread waits for the GPU, `watch` is asked again and again, and an error of it
// ends the wait. Null: nothing is asked any more. `device` is a CUDA device.
void WatchCudaDevice(Device& device, std::function<absl::Status()> watch);

// For transports whose messages steps' graphs hold: gives the graphs back, of all ranks that have them together; what
// comes next is enqueued and captured anew. NCCL's communicators do not end before the graphs that use them.
void ForgetCudaSteps(Device& device);

}  // namespace pipec
