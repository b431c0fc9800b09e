// An order in which the nodes of an ONNX graph can be executed. ONNX asks for one; files do not always keep
// to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Indices of `nodes`; the file's order where that is one. `known`: names that are defined before the first
// node. InvalidArgument, naming the node: an operand that nothing defines, a name defined twice, a cycle.
absl::StatusOr<std::vector<int>> OrderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                            const std::function<bool(const std::string&)>& known);

// "node 'fc1' (MatMul)", for messages.
std::string Describe(const onnx::NodeProto& node);

}  // namespace pipec
