// A device whose kernels do nothing: what remains of a run is its dispatch and its messages.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace pipec {

// Memory (zeroed), streams, events and copies are the host's; Prepare accepts every op.
std::unique_ptr<Device> MakeNullDevice();

}  // namespace pipec
