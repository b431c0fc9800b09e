// What OneHot asks of an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// Indices are (outer, inner), the result (outer, depth, inner).
struct OneHotSizes {
  int64_t outer, depth, inner;
};

// Checks ranks, shapes and the result's type; what the depth operand holds is for the kernel to compare.
absl::StatusOr<OneHotSizes> ReadOneHot(const KernelSpec& spec);

}  // namespace pipec
