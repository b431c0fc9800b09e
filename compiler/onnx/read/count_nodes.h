// How large a model becomes when its functions are expanded, counted before any is: a file of a few hundred
// bytes can ask for 2^64 nodes, by functions that call the next one twice.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Nodes of the main graph once all calls of the model's own functions are expanded; subgraphs count once, and
// so does a node that a schema's function replaces. Saturates at 2^62. InvalidArgument, naming the functions,
// if one calls itself, or if calls are nested more than kMaxCallDepth deep.
absl::StatusOr<int64_t> CountExpandedNodes(const onnx::ModelProto& model);

inline constexpr int kMaxCallDepth = 64;
// What is compiled at most.
inline constexpr int kMaxNodes = 200'000;

}  // namespace pipec
