// CUDA's errors as statuses.
#pragma once

#include <driver_types.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipec {

// OK, or an error that names the call, what it was about and CUDA's own words: "cudaMalloc of 64 bytes: out of memory
// (cudaErrorMemoryAllocation)". ResourceExhausted for memory, Unavailable where no GPU or no fitting driver is there,
// DeadlineExceeded for a time-out, InvalidArgument and FailedPrecondition for misuse, Internal for the rest.
absl::Status CudaStatus(cudaError_t error, absl::string_view call);

}  // namespace pipec

// RETURN_IF_CUDA_ERROR(cudaStreamCreate(&stream)): the text of the call is its name.
#define RETURN_IF_CUDA_ERROR(call)                                            \
  do {                                                                        \
    if (const cudaError_t cuda_error_ = (call); cuda_error_ != cudaSuccess) { \
      return ::pipec::CudaStatus(cuda_error_, #call);                         \
    }                                                                         \
  } while (false)
