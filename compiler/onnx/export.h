// The model that was read, with its contents elsewhere: what a plan and an export of trained parameters keep of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pipec {

// Where a model's initializer lies in a file beside the model.
struct ExternalTensor {
  std::string name;      // of the initializer
  std::string location;  // relative to the model
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The model at `path`, unchanged but for PyTorch's parameters (pytorch_parameters.h) and where the
// initializers' contents lie: once for every list of places, serialised. Each list names the same
// initializers, whose contents are then in no result; those of all others are in every one
// (embed_external_data.h, whose errors are passed on).
absl::StatusOr<std::vector<std::string>> WithExternalData(
    const std::string& path, absl::Span<const std::vector<ExternalTensor>> places);

}  // namespace pipec
