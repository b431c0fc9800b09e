// Sums over replicas on devices, piece by piece: copied together from wherever the replicas lie, added in their order,
// copied back. Devices need not see each other's memory, and no buffer has the size of the gradients.
#pragma once

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/transport/local/sum.h"

namespace pipec {

// What a rank needs to add where the host cannot: memory for a piece of two summands, and the kernels.
class DeviceAdder {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceAdder>> Create(Device& device);

  // Before any rank can enqueue a sum of them: memory and kernels. After the first time with the same sizes nothing is
  // allocated; what smaller sums were given stays as long as the device.
  absl::Status Prepare(absl::Span<const Summand> summands);
  // Enqueues the same sum, and what orders it, on the stream of the rank's own end; then `added()` is marked, and the
  // streams of all ends wait for it: what is left is to mark each end's `done` on its stream.
  absl::Status Enqueue(const Sum& sum, const SumEnd& own, absl::Time deadline);

 private:
  explicit DeviceAdder(Device& device) : device_(device) {}
  absl::Status EnqueuePiece(const Sum& sum, size_t summand, int64_t begin, int64_t bytes, Stream& stream);

  Device& device_;
  int64_t capacity_ = 0;  // bytes of each
  std::byte *result_ = nullptr, *other_ = nullptr;
  absl::flat_hash_map<std::pair<DType, int64_t>, std::unique_ptr<Kernel>>
      kernels_;  // by type and bytes of a piece
  std::unique_ptr<Event> added_;
};

}  // namespace pipec
