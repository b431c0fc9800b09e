// A device whose kernels compute nothing and take the time that the plan models for them: schedules of any number of
// ranks run for real, executor and transport included, on a machine that could not hold the model.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace pipec {

// Memory (zeroed), streams, events and copies are the host's; Prepare accepts every op. A kernel blocks the rank's
// thread. What a wait overshoots, the next kernel is shorter by, as long as the thread did not wait for something else.
std::unique_ptr<Device> MakeReplayDevice();

}  // namespace pipec
