// What tests say to the emulation: the seed, injected errors, how many devices there are; and what they ask it.
#pragma once

#include <driver_types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda_emulation/operands.h"

namespace cuda_emulation {

// Begins anew with this seed: what is enqueued, reports, errors, counts and declared failures are forgotten;
// memory, streams, events and graphs stay. The same seed and the same calls, in the same order, give the same run.
void SetSeed(uint64_t seed);

// The k-th call from now on, from 1, returns the error and does nothing; but what gives something back (cudaFree, a
// destroy, the end of a capture) gives it back.
void FailCall(int64_t k, cudaError_t error = cudaErrorUnknown);
// The same for the k-th call of one name.
void FailCallOf(const std::string& name, int64_t k, cudaError_t error = cudaErrorUnknown);
// Calls since SetSeed, all and by name.
int64_t CallCount();
std::map<std::string, int64_t> CallCounts();

// The places in the program, with their two callers, whose cudaStreamWaitEvent has ordered since SetSeed what
// nothing else had ordered by then. Good in this process.
std::vector<uint64_t> WaitSites();
// A mutant of the program, until SetSeed: these waits do nothing and say that all is well.
void IgnoreWaitsAt(uint64_t site);

// What was refused or found wrong since the last time, in order.
std::vector<std::string> TakeReports();

// Devices 0 ... count-1, each with this much memory, none with access to another's, which they may be given or not.
void SetDevices(int count, size_t bytes_each = size_t{16} << 30, bool can_be_peers = false);
// Copies between devices, since SetDevices, that CUDA would take through the host: neither may reach the other.
int64_t CopiesByHost();

// Whether cuBLASLt has epilogues only for operands that are aligned to 16 bytes.
void EpiloguesWantAlignment(bool want);

// How long a call that waits lets other host threads enqueue what it waits for, before it gives up with
// cudaErrorLaunchTimeout.
void SetPatience(std::chrono::milliseconds patience);

struct LiveObjects {
  size_t allocations, streams, events, graphs, graph_execs;
  size_t dnn_objects;   // handles and descriptors of cuDNN
  size_t blas_objects;  // and of cuBLASLt
  bool operator==(const LiveObjects&) const = default;
};
LiveObjects CountLiveObjects();

}  // namespace cuda_emulation
