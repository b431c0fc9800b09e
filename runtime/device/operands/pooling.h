// Pooling read from an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/window.h"

namespace pipec {

// X is (planes, places), Y (planes, windows).
struct Pooling {
  Windows windows;
  int64_t planes = 0;
  bool count_padding = false;  // AveragePool: padding counts as places
  bool column_major = false;   // MaxPool: indices count the first spatial axis fastest
  int64_t p = 2;               // LpPool

  // How many taps along an axis a window that begins at `start` averages over.
  int64_t Counted(const WindowAxis& axis, int64_t start) const;
};

// From the attributes, which are ONNX's, for X and Y of these shapes. InvalidArgument if they do not fit.
absl::StatusOr<Pooling> ReadPooling(const KernelSpec& spec, const Shape& x, const Shape& y);

// The same of an instruction (X) -> (Y); `global`: all spatial axes are one, of which one window reads everything.
absl::StatusOr<Pooling> ReadPooling(const KernelSpec& spec, bool global);

}  // namespace pipec
