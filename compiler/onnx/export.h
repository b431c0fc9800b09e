// ONNX out.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/module.h"

namespace pipec {

// Where a model's initializer lies in a file beside the model.
struct ExternalTensor {
  std::string name;      // of the initializer
  std::string location;  // relative to the model
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The model at `path`, unchanged but for where the listed initializers' contents lie; serialised.
absl::StatusOr<std::string> WithExternalData(const std::string& path,
                                             absl::Span<const ExternalTensor> tensors);

// The module's graph as a valid ONNX model, serialised; helper ops keep their domain.
absl::StatusOr<std::string> ExportModule(const Module& module);

}  // namespace pipec
