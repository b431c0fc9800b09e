// Ops that leave no node of their own: what they stand for is put in their place while the model is imported.
// Control flow (If, Loop, Scan) leaves the nodes that run, sequences and optionals leave their elements,
// an op that has subgraphs as parts leaves what it is made of.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/attributes.h"

namespace pipec {

// What such an op asks of the importer.
class InPlaceImporter {
 public:
  virtual ~InPlaceImporter() = default;

  virtual Graph& graph() = 0;
  // Whether what only the run knows may decide (ImportOptions::infers).
  virtual bool infers() const = 0;
  // Only the first `count` (int64 []) entries of `value` along `axis` are entries of the result. Unimplemented
  // if it is counted along another already.
  virtual absl::Status Count(Value* value, int axis, Value* count) = 0;
  // The results of a node of the newest opset, `outputs` of them; folded if its operands are small constants.
  virtual absl::StatusOr<std::vector<Value*>> Emit(NodeSpec spec, int outputs = 1) = 0;
  // The results of a subgraph of this node, imported once more; `prefix` goes before its names.
  virtual absl::StatusOr<std::vector<Meaning>> ImportBody(const onnx::GraphProto& body,
                                                          const std::string& prefix,
                                                          std::vector<Meaning> operands) = 0;
};

struct InPlaceNode {
  std::string name;
  int opset;  // of domain ai.onnx; 0 if the graph imports none
  int outputs;
  std::vector<Meaning> operands;  // a trailing absent one may be missing
  Attributes attributes;          // without graphs and types
  const onnx::NodeProto& proto;   // for its subgraphs

  // Absent if the caller gave fewer.
  const Meaning& operand(int i) const;
  bool HasBody(absl::string_view attribute) const;
  // The subgraph of this name. InvalidArgument if there is none.
  absl::StatusOr<const onnx::GraphProto*> Body(absl::string_view attribute) const;
};

// One result per output of the node; errors do not name it. Unimplemented if what the op does depends on
// data, and cannot be chosen from when they are there.
using InPlaceRule = absl::StatusOr<std::vector<Meaning>> (*)(const InPlaceNode& node,
                                                             InPlaceImporter& importer);

struct InPlaceOp {
  absl::string_view op;
  InPlaceRule rule;
  absl::string_view domain = "";
};

absl::Span<const InPlaceOp> ControlFlowOps();  // control_flow.cc
absl::Span<const InPlaceOp> ScanOps();         // scan.cc
absl::Span<const InPlaceOp> SequenceOps();     // sequences.cc
absl::Span<const InPlaceOp> OptionalOps();     // optionals.cc
absl::Span<const InPlaceOp> AttentionOps();    // flex_attention.cc

// Null if the op leaves a node.
InPlaceRule FindInPlaceRule(absl::string_view op, absl::string_view domain = "");

}  // namespace pipec
