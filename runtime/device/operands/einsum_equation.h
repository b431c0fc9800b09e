// Einsum's equation, read against the shapes of its operands.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// Labels are small integers: letters, then the axes that "..." stands for, from
// the last to the first.
struct EinsumEquation {
  std::vector<std::vector<int>> operands;  // the labels of each operand's axes
  std::vector<int> result;
  std::vector<int64_t> dims;  // by label
};

// InvalidArgument for what is no equation, another number of operands, ranks or
// dimensions that do not agree.
absl::StatusOr<EinsumEquation> ReadEinsum(const KernelSpec &spec);

}  // namespace pipec
