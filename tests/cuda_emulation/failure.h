// Why emulated work stopped: the error that CUDA would give, and what was seen.
#pragma once

#include <driver_types.h>

#include <string>

namespace cuda_emulation {

struct Failure {
  cudaError_t error;
  std::string report;
};

}  // namespace cuda_emulation
