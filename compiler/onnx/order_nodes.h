// An order in which the nodes of an ONNX graph can be executed. ONNX asks for one; files do not always keep
// to it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Indices of `nodes`; the file's order where that is one. `scope` holds what is defined before the first
// node. What a node's subgraphs take from outside is an operand too. InvalidArgument, naming the node: an
// operand that nothing defines, a name defined twice, a cycle. A subgraph may give a new meaning to a name of
// the graph around it.
absl::StatusOr<std::vector<int>> OrderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                            const Scope& scope);

// "node 'fc1' (MatMul)", for messages; `prefix` goes before the name.
std::string Describe(const onnx::NodeProto& node, absl::string_view prefix = "");

}  // namespace pipec
