// The nodes of an ONNX graph, one by one in execution order, into the compiler's graph: functions expanded,
// control flow and sequences resolved in place, older forms normalised, results typed, shape arithmetic
// folded.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/batch/baked_batch.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/in_place/counted_axes.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/initializers.h"
#include "compiler/onnx/read/read_model.h"
#include "compiler/onnx/read_node.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

class NodeImporter {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using Functions = google::protobuf::RepeatedPtrField<onnx::FunctionProto>;

  NodeImporter(Graph& graph, const ImportOptions& options, Initializers& initializers, BakedBatch& batch)
      : graph_(graph), options_(options), initializers_(initializers), batch_(batch) {}

  // The model's own functions, before any node. InvalidArgument if two have one name.
  absl::Status AddFunctions(const Functions& functions);

  // Appends the main graph's nodes and adds their results to `scope`. A node that cannot be supported is not
  // an error: the names of its results mean the refusal. Errors name the node, its op, domain and opset.
  absl::Status Import(const Nodes& nodes, const Opsets& opsets, Scope& scope);

  const CountedAxes& counted() const { return counted_; }

 private:
  // The main graph, a subgraph, or one call of a function.
  struct Frame {
    const Opsets& opsets;
    Scope& scope;
    std::string prefix;                   // of the names of values and nodes
    const AttributeBindings* attributes;  // of the function around it; null in the main graph
    bool from_schema = false;             // a body that the onnx library itself wrote: not checked again
  };
  class FrameImporter;
  using Results = std::vector<Meaning>;

  absl::Status ImportNodes(const Nodes& nodes, const Frame& frame);
  absl::Status ImportNode(const onnx::NodeProto& proto, const Frame& frame);
  void NameResult(const std::string& name, const Meaning& meaning, const Frame& frame);
  static std::string NodeName(const onnx::NodeProto& proto, const Frame& frame) {
    return frame.prefix + (proto.name().empty() ? proto.op_type() : proto.name());
  }

  // The node's results.
  absl::StatusOr<Results> Convert(const onnx::NodeProto& proto, const Frame& frame);
  absl::StatusOr<Results> ConvertInPlace(const onnx::NodeProto& proto, const Frame& frame, InPlaceRule rule);
  absl::StatusOr<std::vector<Value*>> ConvertTensors(const onnx::NodeProto& proto, const Frame& frame);
  absl::StatusOr<std::vector<Value*>> Emit(NodeSpec spec, int outputs, const std::vector<bool>& wanted);
  absl::StatusOr<std::vector<Value*>> EmitSizedByData(NodeSpec spec, const SizedByData& sized, int outputs,
                                                      std::vector<bool> wanted);
  // The value with 0 instead of what lies beyond its count.
  absl::StatusOr<Value*> ZeroBeyondCount(Value* value);
  // One call of a function. `callers`: the opsets around it; null for a function that belongs to a schema.
  absl::StatusOr<Results> Call(const onnx::FunctionProto& function, const std::string& name, Results operands,
                               AttributeBindings attributes, const Opsets* callers);
  // The results of a subgraph of a node in `frame`.
  absl::StatusOr<Results> ImportBody(const onnx::GraphProto& body, const std::string& prefix,
                                     Results operands, const Frame& frame);

  Graph& graph_;
  const ImportOptions& options_;
  Initializers& initializers_;
  BakedBatch& batch_;
  CountedAxes counted_;
  absl::flat_hash_map<std::string, const onnx::FunctionProto*> functions_;
  std::vector<std::string> active_;  // functions that are being expanded, outermost first
  int depth_ = 0;                    // of functions and subgraphs around the node
  int64_t copies_ = 0;               // nodes of bodies, and bodies, once per call and iteration
};

}  // namespace pipec
