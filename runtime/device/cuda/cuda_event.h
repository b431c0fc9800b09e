// CUDA's events: they mark a point of a stream's work. Reusable, without times.
#pragma once

#include <driver_types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/device.h"

namespace pipec {

class CudaEvent : public Event {
 public:
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create();
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  // Blocks the caller until what was last marked has happened; at once if nothing was. DeadlineExceeded if it did not in time.
  absl::Status Await(absl::Time deadline) const;

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  const cudaEvent_t event_;
};

}  // namespace pipec
