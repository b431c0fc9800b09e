// A stream of a GPU. Work on it waits for nothing but its own order and the events it is told to wait for.
#pragma once

#include <driver_types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/cuda/faults.h"
#include "runtime/device/device.h"

namespace pipec {

class CudaStream : public Stream {
 public:
  // `faults` must outlive the stream.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(const cuda::Faults& faults);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  // Events of any GPU can be waited for, those of the stream's GPU can be marked.
  absl::Status Wait(Event& event, absl::Time deadline) override;
  absl::Status Record(Event& event) override;
  // Also InvalidArgument if a kernel found contents it cannot take.
  absl::Status Synchronize(absl::Time deadline) override;

 private:
  CudaStream(cudaStream_t stream, const cuda::Faults& faults) : stream_(stream), faults_(faults) {}
  const cudaStream_t stream_;
  const cuda::Faults& faults_;
};

}  // namespace pipec
