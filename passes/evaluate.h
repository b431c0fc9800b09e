// Runs single nodes on the CPU device at compile time: one implementation of each op for folding and for the runtime.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "runtime/device/device.h"

namespace pipec {

// Contents of a constant or parameter, read from its file if need be.
absl::StatusOr<std::string> ReadData(const Value& value);

// What a device is asked a kernel for; operands' contents are left open.
KernelSpec SpecOf(const Node& node);

// The contents of every output of `node` (row-major bytes; empty for absent ones), given those of its inputs (null for
// absent ones). Unimplemented if the CPU device has no kernel.
absl::StatusOr<std::vector<std::string>> Evaluate(const Node& node, absl::Span<const std::string* const> inputs);

}  // namespace pipec
