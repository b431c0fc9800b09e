// What Prepare may use of the device that a kernel is for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/fault.h"
#include "runtime/device/cuda/kernels/update_gate.h"
#include "runtime/device/device.h"

struct cublasLtContext;
struct cudnnContext;

namespace pipec::cuda {

class CudaContext {
 public:
  virtual ~CudaContext() = default;
  virtual int multiprocessors() const = 0;
  // Of the compute capability: 9 for sm_90.
  virtual int major() const = 0;
  // cuBLASLt's handle of this device.
  virtual absl::StatusOr<cublasLtContext*> blas() = 0;
  // cuDNN's.
  virtual absl::StatusOr<cudnnContext*> dnn() = 0;
  // What kernels share, by a key that begins with the kind of kernel: null at first. Whoever makes it puts it there;
  // it lives as long as the device.
  virtual std::shared_ptr<const void>& Shared(const std::string& key) = 0;
  // Host data that stays on the GPU as long as the device: tables of a kernel.
  virtual absl::StatusOr<const void*> Keep(const void* data, int64_t bytes) = 0;
  // What a kernel that changes what training keeps looks at first. The same for all of a rank.
  virtual absl::StatusOr<const UpdateGate*> gate() = 0;
  // For a kernel that looks at contents: "node 'n' (Op): label 7 at flat position 3 is not " + `wanted`, with
  // `what` = "label".
  virtual FaultSite AddFaultSite(const KernelSpec& spec, absl::string_view what,
                                 absl::string_view wanted) = 0;
};

}  // namespace pipec::cuda
