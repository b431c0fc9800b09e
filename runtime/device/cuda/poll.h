// Waiting for a GPU with a limit: CUDA's own waits have none.
#pragma once

#include <driver_types.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/faults.h"

namespace pipec {

// Calls query() until it is no longer cudaErrorNotReady; DeadlineExceeded after the deadline, or what the watch of
// `faults` says. Spins at first: most waits are shorter than a sleep.
template <typename Query>
absl::Status PollCuda(const Query& query, absl::string_view what, const cuda::Faults& faults, absl::Time deadline) {
  for (int64_t tries = 0;; ++tries) {
    const cudaError_t error = query();
    if (error != cudaErrorNotReady) return CudaStatus(error, what);
    if (tries < 1000) continue;
    RETURN_IF_ERROR(faults.Look());
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(what, ": the GPU was not done in time"));
    }
    absl::SleepFor(absl::Microseconds(20));
  }
}

}  // namespace pipec
