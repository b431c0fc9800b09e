// What a manifest says of parameters that stay in the user's own files.
#pragma once

#include "absl/status/status.h"
#include "compiler/emit/parameter_placement.h"
#include "runtime/plan/manifest.h"

namespace pipec {

// Fills in the hash of every linked parameter and the files they lie in. `manifest.parameters` are those of
// the placement. What is hashed is read through a small buffer.
absl::Status DescribeLinks(const ParameterPlacement& placement, Manifest& manifest);

}  // namespace pipec
