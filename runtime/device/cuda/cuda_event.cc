#include "runtime/device/cuda/cuda_event.h"

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/poll.h"

namespace pipec {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create() {
  cudaEvent_t event = nullptr;
  RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return std::unique_ptr<CudaEvent>(new CudaEvent(event));
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

absl::Status CudaEvent::Await(absl::Time deadline) const {
  return PollCuda([this] { return cudaEventQuery(event_); }, "cudaEventQuery", deadline);
}

}  // namespace pipec
