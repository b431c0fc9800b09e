// Contents that no shape could rule out (a label out of range): a kernel cannot return an error, so it leaves a
// note where the host reads it.
#pragma once

#include <cstdint>

namespace pipec::cuda {

// In pinned memory that the GPU writes and the host reads once a stream is done. The first fault stays.
struct FaultNote {
  int site = 0;  // 1 + the place in the device's list of kernels that look at contents; 0: none
  int64_t value = 0, position = 0;
};

// What a kernel needs to leave one.
struct FaultSite {
  FaultNote* note = nullptr;
  int site = 0;
};

}  // namespace pipec::cuda
