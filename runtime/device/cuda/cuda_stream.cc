#include "runtime/device/cuda/cuda_stream.h"

#include <cuda_runtime_api.h>

#include "runtime/base/status.h"
#include "runtime/device/cuda/capture_turn.h"
#include "runtime/device/cuda/cuda_event.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/poll.h"

namespace pipec {
namespace {

absl::StatusOr<CudaEvent*> OwnEvent(Event& event) {
  auto* const own = dynamic_cast<CudaEvent*>(&event);
  if (own == nullptr) return absl::InternalError("a CUDA stream takes CUDA's events only");
  return own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(const cuda::Faults& faults) {
  cudaStream_t stream = nullptr;
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return std::unique_ptr<CudaStream>(new CudaStream(stream, faults));
}

CudaStream::~CudaStream() { cudaStreamDestroy(stream_); }

absl::Status CudaStream::Wait(Event& event, absl::Time deadline) {
  ASSIGN_OR_RETURN(CudaEvent * own, OwnEvent(event));
  RETURN_IF_ERROR(cuda::CaptureTurn::Without([&] { return own->AwaitMark(deadline); }));
  return CudaStatus(cudaStreamWaitEvent(stream_, own->get(), 0), "cudaStreamWaitEvent");
}

absl::Status CudaStream::Record(Event& event) {
  ASSIGN_OR_RETURN(CudaEvent * own, OwnEvent(event));
  return own->Mark(stream_);
}

absl::Status CudaStream::Synchronize(absl::Time deadline) {
  RETURN_IF_ERROR(PollCuda([this] { return cudaStreamQuery(stream_); }, "cudaStreamQuery", faults_, deadline));
  return faults_.Check();
}

}  // namespace pipec
