#include "runtime/device/cuda/cuda_event.h"

#include <cuda_runtime_api.h>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/poll.h"

namespace pipec {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(const cuda::Faults& faults) {
  cudaEvent_t event = nullptr;
  RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return std::unique_ptr<CudaEvent>(new CudaEvent(event, faults));
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

void CudaEvent::Expect() {
  std::lock_guard<std::mutex> lock(mutex_);
  expected_ = true;
  status_ = absl::OkStatus();
}

void CudaEvent::Fail(const absl::Status& status) {
  // Told under the lock: who waits may destroy the event as soon as it can know.
  std::lock_guard<std::mutex> lock(mutex_);
  if (!expected_) return;
  expected_ = false;
  status_ = status;
  changed_.notify_all();
}

absl::Status CudaEvent::Mark(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_CUDA_ERROR(cudaEventRecord(event_, stream));
  expected_ = false;
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status CudaEvent::AwaitMark(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, absl::ToChronoTime(deadline), [this] { return !expected_; })) {
    return absl::DeadlineExceededError("the other rank did not come to it in time");
  }
  return status_;
}

absl::Status CudaEvent::Await(absl::Time deadline) {
  RETURN_IF_ERROR(AwaitMark(deadline));
  RETURN_IF_ERROR(PollCuda([this] { return cudaEventQuery(event_); }, "cudaEventQuery", faults_, deadline));
  return faults_.Check();
}

}  // namespace pipec
