// What a device is beside Device (runtime/device/device.h) if its kernels compute nothing: no result of it means
// anything.
#pragma once

namespace pipec {

class ComputesNothing {
 public:
  virtual ~ComputesNothing() = default;
};

}  // namespace pipec
