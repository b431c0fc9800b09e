// Cast from and to types of at most 8 bits (runtime/base/tiny_types.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// spec: a Cast to the type `to`, checked for the number of operands; its operand or `to` is tiny.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareTinyCast(const KernelSpec& spec, DType to);

}  // namespace pipec::cpu
