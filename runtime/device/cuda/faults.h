// Which kernels look at contents, and what they found; what else may go wrong while a thread waits for the GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  // What is asked while a thread waits for the GPU: an error ends the wait. Null: nothing. For transports, whose
  // peers may be gone; to be set while nobody waits.
  void Watch(std::function<absl::Status()> watch) { watch_ = std::move(watch); }
  absl::Status Look() const { return watch_ ? watch_() : absl::OkStatus(); }
  // InvalidArgument once a kernel has left a note; to be asked when the streams it may have run on are done.
  absl::Status Check() const;

 private:
  struct Site {
    std::string node, op, what, wanted;
  };
  explicit Faults(FaultNote* note) : note_(note) {}
  FaultNote* const note_;
  std::vector<Site> sites_;
  std::function<absl::Status()> watch_;
};

}  // namespace pipec::cuda
