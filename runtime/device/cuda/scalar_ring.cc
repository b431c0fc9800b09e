#include "runtime/device/cuda/scalar_ring.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <new>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"

namespace pipec {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

constexpr int64_t kOwnBytes = (sizeof(StepScalars) + kAlignment - 1) / kAlignment * kAlignment;

}  // namespace

ScalarRing::ScalarRing(int64_t parameters)
    : parameters_(parameters),
      slot_bytes_(kOwnBytes + Align(parameters * static_cast<int64_t>(sizeof(ParameterScalars)))) {}

absl::StatusOr<std::unique_ptr<ScalarRing>> ScalarRing::Create(int64_t parameters, const cuda::Faults& faults) {
  std::unique_ptr<ScalarRing> ring(new ScalarRing(parameters));
  void *host = nullptr, *device = nullptr;
  RETURN_IF_CUDA_ERROR(cudaHostAlloc(&host, kSlots * ring->slot_bytes_, cudaHostAllocDefault));
  ring->host_ = static_cast<std::byte*>(host);
  RETURN_IF_CUDA_ERROR(cudaMalloc(&device, kSlots * ring->slot_bytes_));
  ring->device_ = static_cast<std::byte*>(device);
  for (int slot = 0; slot < kSlots; ++slot) {
    ASSIGN_OR_RETURN(std::unique_ptr<CudaEvent> event, CudaEvent::Create(faults));
    ring->copied_.push_back(std::move(event));
  }
  return ring;
}

ScalarRing::~ScalarRing() {
  cudaFreeHost(host_);
  cudaFree(device_);
}

absl::StatusOr<const StepScalars*> ScalarRing::Place(CudaStream& stream, const StepScalars& scalars,
                                                     absl::Time deadline) {
  const int slot = next_;
  next_ = (next_ + 1) % kSlots;
  RETURN_IF_ERROR(copied_[slot]->Await(deadline));
  std::byte* const host = host_ + slot * slot_bytes_;
  std::byte* const device = device_ + slot * slot_bytes_;
  auto* const own = new (host) StepScalars(scalars);
  if (scalars.parameters != nullptr) {
    std::copy_n(scalars.parameters, parameters_, reinterpret_cast<ParameterScalars*>(host + kOwnBytes));
    own->parameters = reinterpret_cast<const ParameterScalars*>(device + kOwnBytes);
  }
  RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(device, host, slot_bytes_, cudaMemcpyHostToDevice, stream.get()));
  RETURN_IF_ERROR(stream.Record(*copied_[slot]));
  return reinterpret_cast<const StepScalars*>(device);
}

}  // namespace pipec
