#include "runtime/device/cuda/faults.h"

#include <cuda_runtime_api.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/cuda_status.h"

namespace pipec::cuda {

absl::StatusOr<std::unique_ptr<Faults>> Faults::Create() {
  void* memory = nullptr;
  RETURN_IF_CUDA_ERROR(cudaHostAlloc(&memory, sizeof(FaultNote), cudaHostAllocDefault));
  return std::unique_ptr<Faults>(new Faults(new (memory) FaultNote));
}

Faults::~Faults() { cudaFreeHost(note_); }

FaultSite Faults::Add(const KernelSpec& spec, absl::string_view what, absl::string_view wanted) {
  sites_.push_back({spec.name, spec.op, std::string(what), std::string(wanted)});
  return {note_, static_cast<int>(sites_.size())};
}

absl::Status Faults::Check() const {
  if (note_->site == 0) return absl::OkStatus();
  const Site& site = sites_[note_->site - 1];
  return absl::InvalidArgumentError(absl::StrCat("node '", site.node, "' (", site.op, "): ", site.what, " ",
                                                 note_->value, " at flat position ", note_->position,
                                                 " is not ", site.wanted));
}

}  // namespace pipec::cuda
