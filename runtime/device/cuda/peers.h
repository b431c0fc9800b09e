// Copies between GPUs of this process go from one to the other where the hardware can; without peer access CUDA takes
// them through the host.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace pipec::cuda {

// A GPU that is in use, as long as the object lives.
class Peer {
 public:
  // GPU `ordinal`, the calling thread's. It and the others that are in use then reach each other's memory, where they
  // can.
  static absl::StatusOr<std::unique_ptr<Peer>> Join(int ordinal);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

 private:
  explicit Peer(int ordinal) : ordinal_(ordinal) {}
  const int ordinal_;
};

}  // namespace pipec::cuda
