// FusedMatMul with an activation as two kernels of a device, for where it has none that does both.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// The product without its activation, then Gelu or GeluGrad on it where it lies. `prepare` makes the device's kernel
// of an instruction, for its types and no others: its errors are this one's.
absl::StatusOr<std::unique_ptr<Kernel>> MakeActivatedProduct(
    const KernelSpec& spec,
    const std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelSpec& spec)>& prepare);

}  // namespace pipec
