// The nodes of an ONNX graph, one by one in execution order, into the compiler's graph: functions expanded in
// place, older forms normalised, results typed, shape arithmetic folded.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/read_model.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace pipec {

class NodeImporter {
 public:
  // What ONNX's names mean in one graph or function body. A null is an optional operand that the caller left
  // out.
  using Scope = absl::flat_hash_map<std::string, Value*>;
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using Functions = google::protobuf::RepeatedPtrField<onnx::FunctionProto>;

  NodeImporter(Graph& graph, const ImportOptions& options, const Functions& functions);

  // Appends the main graph's nodes and adds their results to `scope`. Errors name the node, its op, domain
  // and opset.
  absl::Status Import(const Nodes& nodes, const Opsets& opsets, Scope& scope);

 private:
  using AttributeBindings = absl::flat_hash_map<std::string, Attribute>;

  // The main graph, or one call of a function.
  struct Frame {
    const Opsets& opsets;
    Scope& scope;
    std::string prefix;  // of the names of values and nodes
    const AttributeBindings*
        attributes;            // the function's, for attributes by reference; null in the main graph
    bool from_schema = false;  // a body that the onnx library itself wrote: not checked again
  };

  absl::Status ImportNodes(const Nodes& nodes, const Frame& frame);
  absl::Status ImportNode(const onnx::NodeProto& proto, const Frame& frame);
  // The node's results; absent ones are null.
  absl::StatusOr<std::vector<Value*>> Convert(const onnx::NodeProto& proto, const Frame& frame);
  absl::StatusOr<std::vector<Value*>> Emit(NodeSpec spec, int outputs, const std::vector<bool>& wanted);
  absl::StatusOr<std::vector<Value*>> Call(const onnx::FunctionProto& function, const NodeSpec& spec,
                                           AttributeBindings attributes, bool from_schema);

  Graph& graph_;
  const ImportOptions& options_;
  absl::flat_hash_map<std::string, const onnx::FunctionProto*> functions_;
  std::vector<std::string> active_;  // functions that are being expanded, outermost first
};

}  // namespace pipec
