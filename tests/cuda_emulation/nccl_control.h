// What tests say to the double of NCCL.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace cuda_emulation {

// What runs on this device's communicators from now on never ends, until they are aborted, and they report this error
// asynchronously: a link or a peer is gone.
void BreakCommunicators(int device, ncclResult_t error = ncclRemoteError);

// Communicators that have neither been destroyed nor aborted.
size_t LiveCommunicators();

}  // namespace cuda_emulation
