// A kernel of float32 on operands of 16-bit floats: those are widened into the workspace, results rounded once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// What a device does to widen and round rows of elements, on a stream.
class SmallFloatConversions {
 public:
  virtual ~SmallFloatConversions() = default;
  virtual absl::Status Widen(Stream& stream, DType dtype, const void* from, float* to, int64_t n) const = 0;
  virtual absl::Status Round(Stream& stream, DType dtype, const float* from, void* to, int64_t n) const = 0;
  // Whether kernels read the host's memory: constants are then widened once, at load.
  virtual bool reads_host_memory() const = 0;
};

bool HasSmallFloats(const KernelSpec& spec);

// `prepare` makes the kernel of float32. `conversions` outlives the kernel.
using PrepareWide = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelSpec& spec)>;
absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec& spec,
                                                          const SmallFloatConversions& conversions,
                                                          const PrepareWide& prepare);

}  // namespace pipec
