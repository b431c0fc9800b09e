#include "runtime/device/cuda/peers.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"

namespace pipec::cuda {
namespace {

// How many use each GPU of this process. CUDA, too, knows one context of a GPU for the whole process.
struct GpusInUse {
  std::mutex mutex;
  std::map<int, int> users;
};
GpusInUse& InUse() {
  static GpusInUse* const gpus = new GpusInUse;
  return *gpus;
}

// Lets `from` reach the memory of `to`.
absl::Status Reach(int from, int to) {
  int can = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceCanAccessPeer(&can, from, to));
  if (can == 0) return absl::OkStatus();
  RETURN_IF_CUDA_ERROR(cudaSetDevice(from));
  const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // else CUB takes it for one of its kernels'
    return absl::OkStatus();
  }
  return CudaStatus(error, absl::StrCat("cudaDeviceEnablePeerAccess from GPU ", from, " to ", to));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Join(int ordinal) {
  GpusInUse& gpus = InUse();
  std::lock_guard<std::mutex> lock(gpus.mutex);
  if (gpus.users[ordinal] == 0) {
    for (const auto& [peer, users] : gpus.users) {
      if (users == 0 || peer == ordinal) continue;
      RETURN_IF_ERROR(Reach(ordinal, peer));
      RETURN_IF_ERROR(Reach(peer, ordinal));
    }
    RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal));
  }
  ++gpus.users[ordinal];
  return std::unique_ptr<Peer>(new Peer(ordinal));
}

Peer::~Peer() {
  std::lock_guard<std::mutex> lock(InUse().mutex);
  --InUse().users[ordinal_];
}

}  // namespace pipec::cuda
