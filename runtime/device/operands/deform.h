// DeformConv read from an instruction: a convolution whose taps read X at moved places.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/window.h"

namespace pipec {

struct Deform {
  WindowAxis rows, columns;
  int64_t samples = 0, channels = 0, filters = 0;
  int64_t group = 1, offset_group = 1;

  int64_t taps() const { return rows.kernel * columns.kernel; }
  int64_t places() const { return rows.in * columns.in; }
  int64_t windows() const { return rows.out * columns.out; }

  // Unimplemented for other than 2 spatial axes.
  static absl::StatusOr<Deform> Of(const KernelSpec& spec);
};

}  // namespace pipec
