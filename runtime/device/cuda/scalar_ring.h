// Copies of a step's scalars on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/cuda/cuda_event.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/scalars.h"

namespace pipec {

// A few slots, each in pinned memory and on the GPU. A slot is written again when its copy is over, and on the stream that
// took it last, so that kernels that read it have run by then.
class ScalarRing {
 public:
  // `parameters`: how many parameters have rates of their own.
  static absl::StatusOr<std::unique_ptr<ScalarRing>> Create(int64_t parameters, const cuda::Faults& faults);
  ~ScalarRing();
  ScalarRing(const ScalarRing&) = delete;
  ScalarRing& operator=(const ScalarRing&) = delete;

  int64_t parameters() const { return parameters_; }
  // Enqueues the copy; the GPU's address. All calls name the same stream. DeadlineExceeded if an old copy does not end.
  absl::StatusOr<const StepScalars*> Place(CudaStream& stream, const StepScalars& scalars,
                                           absl::Time deadline);

 private:
  static constexpr int kSlots = 32;
  explicit ScalarRing(int64_t parameters);

  const int64_t parameters_, slot_bytes_;
  std::byte* host_ = nullptr;
  std::byte* device_ = nullptr;
  std::vector<std::unique_ptr<CudaEvent>> copied_;  // one a slot
  int next_ = 0;
};

}  // namespace pipec
