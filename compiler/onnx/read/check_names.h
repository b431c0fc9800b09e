// Names in a model are arbitrary bytes. They end up in terminals, in JSON, in HTML, and, where functions are
// expanded, many times over: so they are checked once, before anything else looks at them.
#pragma once

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Longer than any exporter's, short enough to be repeated once a node.
inline constexpr int kMaxNameBytes = 1024;

// InvalidArgument unless every name (of values, nodes, ops, domains, functions, attributes, dimensions; in
// subgraphs too) is valid UTF-8 without control characters and at most kMaxNameBytes long.
absl::Status CheckNames(const onnx::ModelProto& model);

}  // namespace pipec
