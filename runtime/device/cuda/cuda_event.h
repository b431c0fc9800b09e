// CUDA's events: they mark a point of a stream's work. Reusable, without times.
#pragma once

#include <driver_types.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/cuda/faults.h"
#include "runtime/device/device.h"

namespace pipec {

class CudaEvent : public Event {
 public:
  // Of the calling thread's GPU, whose streams alone may mark it. `faults` must outlive the event.
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create(const cuda::Faults& faults);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void Expect() override;
  void Fail(const absl::Status& status) override;
  // Also InvalidArgument if a kernel found contents it cannot take. At once if nothing was ever marked.
  absl::Status Await(absl::Time deadline) override;

  // Records it on the stream and lets those go on who wait for that.
  absl::Status Mark(cudaStream_t stream);
  // Blocks the caller while it is expected: then it is known what to wait for. The status that it failed with, or
  // DeadlineExceeded.
  absl::Status AwaitMark(absl::Time deadline);
  cudaEvent_t get() const { return event_; }

 private:
  CudaEvent(cudaEvent_t event, const cuda::Faults& faults) : event_(event), faults_(faults) {}

  const cudaEvent_t event_;
  const cuda::Faults& faults_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool expected_ = false;
  absl::Status status_;
};

}  // namespace pipec
