// What TensorScatter asks of an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// The cache is (outer, length, inner), an update of it (outer, count, inner); outer / samples rows of a sample lie
// together.
struct TensorScatterSizes {
  int64_t outer, length, count;
  int64_t bytes;  // of inner
  int64_t samples;
  bool circular;

  // A write index is in [0, last].
  int64_t last() const { return circular ? length - 1 : length - count; }
};

// Checks mode, axis, shapes and types; what the indices hold is for the kernel.
absl::StatusOr<TensorScatterSizes> ReadTensorScatter(const KernelSpec& spec);

}  // namespace pipec
