// Which kernels look at contents, and what they found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/fault.h"
#include "runtime/device/device.h"

namespace pipec::cuda {

class Faults {
 public:
  // Takes pinned memory.
  static absl::StatusOr<std::unique_ptr<Faults>> Create();
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // CudaContext::AddFaultSite.
  FaultSite Add(const KernelSpec& spec, absl::string_view what, absl::string_view wanted);
  // InvalidArgument once a kernel has left a note; to be asked when the streams it may have run on are done.
  absl::Status Check() const;

 private:
  struct Site {
    std::string node, op, what, wanted;
  };
  explicit Faults(FaultNote* note) : note_(note) {}
  FaultNote* const note_;
  std::vector<Site> sites_;
};

}  // namespace pipec::cuda
