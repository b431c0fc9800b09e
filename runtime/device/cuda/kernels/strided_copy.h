// Copies of views, chosen from their strides: at once where both lie together, 16 bytes at a time where rows do, by
// tiles where rows of one are columns of the other.
#pragma once

#include <driver_types.h>

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/move.h"

namespace pipec::cuda {

class StridedCopy {
 public:
  StridedCopy() = default;
  // Elements of 1, 2, 4 or 8 bytes. The places of the result are distinct. Unimplemented for more than 2^32 - 1
  // elements.
  static absl::StatusOr<StridedCopy> Of(const KernelSpec& spec, DType dtype, const StridedMove& move);

  // `from` and `to` are the tensors, which the move's offsets count from; they do not overlap.
  absl::Status Run(cudaStream_t stream, const void* from, void* to) const;

 private:
  struct Axis {
    int64_t size, from, to;  // strides in bytes
  };
  absl::Status RunTiles(cudaStream_t stream, const std::byte* from, std::byte* to) const;

  int64_t element_bytes_ = 1, elements_ = 0;
  int64_t from_offset_ = 0, to_offset_ = 0;  // bytes
  int rank_ = 0;
  std::array<Axis, kMoveRank> axes_{};  // by `to`, outermost first; neighbours are merged
  int tiled_ = -1;  // the axis along which `from` is contiguous, where the last one's `to` is
};

}  // namespace pipec::cuda
