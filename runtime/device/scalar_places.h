// Devices whose kernels cannot read the host's memory keep copies of a step's scalars in their own.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// Implemented by such a device beside Device.
class ScalarPlaces {
 public:
  virtual ~ScalarPlaces() = default;
  // Where kernels that are enqueued on the stream after this call find these scalars, their parameters' rates included. The
  // place holds until the next call for the stream; what was enqueued before it still finds its own.
  virtual absl::StatusOr<const StepScalars*> Place(Stream& stream, const StepScalars& scalars) = 0;
};

// What KernelArguments::scalars has to be: the argument itself on a device that reads the host's memory.
inline absl::StatusOr<const StepScalars*> PlaceScalars(Device& device, Stream& stream,
                                                       const StepScalars& scalars) {
  auto* const places = dynamic_cast<ScalarPlaces*>(&device);
  if (places == nullptr) return &scalars;
  return places->Place(stream, scalars);
}

}  // namespace pipec
