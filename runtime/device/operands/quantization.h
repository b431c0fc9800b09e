// Which scale an element of QuantizeLinear and DequantizeLinear has.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/axis.h"

namespace pipec {

// The tensor is (outer, length, inner); the scale of element (o, l, i) is at o
// * outer_step + l / block * step + i * inner_step. One scale for all: every
// step is 0; one for each place of the axis: only `step` is not; blocks: none
// is.
struct QuantizationScales {
  AxisView view;
  int64_t block = 1;                                 // places of the axis that share a scale
  int64_t outer_step = 0, step = 0, inner_step = 0;  // in scale

  // From operands 0 to 2; InvalidArgument if their shapes or the attributes do not fit.
  static absl::StatusOr<QuantizationScales> Of(const KernelSpec& spec);
};

}  // namespace pipec
