// How a CUDA kernel makes itself known. A file of kernels/ defines, at its end, a function
//   void RegisterXxxKernels(KernelRegistry& registry)
// which kernels/register.cc calls; nothing registers itself behind the linker's back.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/device.h"

namespace pipec::cuda {

// Unimplemented if there is no kernel for these types and attributes; InvalidArgument if the shapes are wrong.
using PrepareFunction = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec,
                                                                    CudaContext& context);

class KernelRegistry {
 public:
  void Add(absl::string_view op, absl::string_view domain, PrepareFunction prepare);
  // Null if there is none.
  PrepareFunction Find(absl::string_view op, absl::string_view domain) const;
  // (domain, op), sorted.
  std::vector<std::pair<std::string, std::string>> Names() const;

 private:
  struct Row {
    std::string op, domain;
    PrepareFunction prepare;
  };
  std::vector<Row> rows_;
};

// All CUDA kernels, built once.
const KernelRegistry& Kernels();

}  // namespace pipec::cuda
