#include "compiler/onnx/read/all_initializers.h"

namespace pipec {
namespace {

using Visitor = absl::FunctionRef<void(onnx::TensorProto&)>;

void VisitNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Visitor visit);

void VisitGraph(onnx::GraphProto& graph, Visitor visit) {
  for (auto& tensor : *graph.mutable_initializer()) visit(tensor);
  VisitNodes(*graph.mutable_node(), visit);
}

void VisitNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Visitor visit) {
  for (auto& node : nodes) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) VisitGraph(*attribute.mutable_g(), visit);
      for (auto& graph : *attribute.mutable_graphs()) VisitGraph(graph, visit);
    }
  }
}

}  // namespace

void ForEachInitializer(onnx::ModelProto& model, Visitor visit) {
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) visit(tensor);
  ForEachSubgraphInitializer(model, visit);
}

void ForEachSubgraphInitializer(onnx::ModelProto& model, Visitor visit) {
  VisitNodes(*model.mutable_graph()->mutable_node(), visit);
  for (auto& function : *model.mutable_functions()) VisitNodes(*function.mutable_node(), visit);
}

}  // namespace pipec
