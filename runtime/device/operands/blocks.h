// MaxUnpool and Col2Im read from an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/check.h"

namespace pipec {

// The shape that MaxPool read before MaxUnpool puts it back, with everything checked.
absl::StatusOr<Shape> PooledShapeOf(const KernelSpec& spec);

// Col2Im's image and the blocks over it; the block's own sizes may be known at launch only.
struct ImageBlocks {
  Ints image, strides, dilations, before, after;
  int64_t planes = 0, taps = 0, blocks = 0;  // N * C; of one plane

  static absl::StatusOr<ImageBlocks> Of(const KernelSpec& spec);
  // How many blocks lie along each axis; InvalidArgument unless they are `blocks`, with `taps` taps.
  absl::StatusOr<Ints> Counts(const Ints& block) const;
};

}  // namespace pipec
