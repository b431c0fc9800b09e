// What a node's subgraphs use of the graph around them: operands that the node does not list.
#pragma once

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace pipec {

// Names that the subgraphs of `node`, and theirs, use but do not define themselves; without repetition, in
// the order in which they are met. A name that is defined both inside and outside means the inner one. Empty
// for most nodes.
std::vector<std::string> Captures(const onnx::NodeProto& node);

}  // namespace pipec
