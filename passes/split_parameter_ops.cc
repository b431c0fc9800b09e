// Nodes that depend on parameters and constants only, such as a Cast of a weight, belong to whoever reads
// them: one private copy a consumer, directly before it.
//   before: t = Cast(W); a = MatMul(x, t); b = MatMul(a, t)
//   after:  t = Cast(W); a = MatMul(x, t); t_1 = Cast(W); b = MatMul(a, t_1)
// So they lie in their consumer's stage wherever the cut is, no message carries a weight, and every use of a
// parameter is one use in every cut. Level model; after fusion took most of them away; before gradients,
// which count the uses of a parameter.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/onnx/schema/infer.h"
#include "passes/passes.h"

namespace pipec {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

bool IsWeightOnly(const Node& node, const NodeSet& weight_only) {
  for (const Value* input : node.inputs()) {
    if (!input || input->kind() == ValueKind::kParameter || input->kind() == ValueKind::kConstant) continue;
    if (!input->producer() || !weight_only.contains(input->producer())) return false;
  }
  return IsDeterministic(node.op(), node.domain());
}

// Makes copies of weight-only nodes for one consumer, each node once.
class Copier {
 public:
  Copier(Graph& graph, Node* consumer, const NodeSet& weight_only, NodeSet& taken)
      : graph_(graph), consumer_(consumer), weight_only_(weight_only), taken_(taken) {}

  // `value`, or what stands for it at this consumer.
  Value* Localize(Value* value) {
    Node* node = value ? value->producer() : nullptr;
    if (!node || !weight_only_.contains(node)) return value;
    return Own(node)->output(value->output_index());
  }

 private:
  // The consumer's own copy of `node`: the node itself for the first consumer, in execution order, that asks.
  Node* Own(Node* node) {
    if (auto it = own_.find(node); it != own_.end()) return it->second;
    Node* own = node;
    if (taken_.insert(node).second) {
      for (int i = 0; i < node->inputs().size(); ++i) {
        Value* local = Localize(node->input(i));
        if (local != node->input(i)) node->SetInput(i, local);
      }
      graph_.Move(node, consumer_);
    } else {
      own = Clone(node);
    }
    own_[node] = own;
    return own;
  }

  Node* Clone(Node* node) {
    NodeSpec spec{
        .op = node->op(), .domain = node->domain(), .name = node->name(), .attributes = node->attributes};
    for (Value* input : node->inputs()) spec.inputs.push_back(Localize(input));
    for (const Value* output : node->outputs()) {
      spec.outputs.push_back(output ? output->type : TensorType());
      spec.output_names.push_back(output ? output->name() : "");
    }
    return graph_.AddNode(std::move(spec), consumer_);
  }

  Graph& graph_;
  Node* consumer_;
  const NodeSet& weight_only_;
  NodeSet& taken_;  // nodes that already belong to a consumer
  absl::flat_hash_map<Node*, Node*> own_;
};

}  // namespace

absl::StatusOr<bool> SplitParameterOps(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  const std::vector<Node*> nodes = graph.Nodes();
  NodeSet weight_only, taken;
  for (const Node* node : nodes) {
    if (IsWeightOnly(*node, weight_only)) weight_only.insert(node);
  }
  for (Node* consumer : nodes) {
    if (weight_only.contains(consumer)) continue;
    Copier copier(graph, consumer, weight_only, taken);
    for (int i = 0; i < consumer->inputs().size(); ++i) {
      Value* local = copier.Localize(consumer->input(i));
      if (local != consumer->input(i)) consumer->SetInput(i, local);
    }
  }
  return graph.Nodes() != nodes;
}

}  // namespace pipec
