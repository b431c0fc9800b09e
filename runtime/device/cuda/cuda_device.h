// A GPU of this host as a device: memory by one cudaMalloc a call, streams, events, kernels of kernels/.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace pipec {

// GPU `ordinal` of this process. One rank's thread makes all calls of the device and of its streams and kernels; several
// devices may be of the same GPU. Where no GPU is, every call that would need one is Unavailable and says so. Also
// implements ScalarPlaces, for one stream.
std::unique_ptr<Device> MakeCudaDevice(int ordinal);

}  // namespace pipec
