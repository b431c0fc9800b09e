// ONNX's Gradient becomes the nodes that compute it.
//   before:  c = Add(a, b);  d = Mul(c, a);  dd_da, dd_db = ai.pipec::Gradient(a, b, d)
//   after:   ...;  dc = Mul(1, a);  da0 = Mul(1, c);  dd_da = Identity(Add(da0, dc));  dd_db = Identity(dc)
// By the gradient rules of build-gradients, from ones for y (what y is summed from). Level model, kept, in both modes.
// Before all changes of the graph: its nodes are then the model's own.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/gradients/differentiate.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

class Expander {
 public:
  Expander(Module& module, Node* node) : module_(module), graph_(module.graph), node_(node) {}

  absl::Status Run() {
    for (Node* node : graph_.Nodes()) {
      if (node == node_) break;
      forward_.push_back(node);
    }
    Node* const last = graph_.last_node();
    MarkNeeded();
    Value* y = node_->inputs().back();
    GradientBuilder builder(graph_, node_);
    const std::vector<int64_t> shape(y->type.shape.begin(), y->type.shape.end());
    gradients_[y] = builder.Emit("Expand", {builder.Scalar(y->type.dtype, 1), builder.Ints(shape)});
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it) RETURN_IF_ERROR(Differentiate(*it));
    for (int k = 0; k < static_cast<int>(node_->outputs().size()); ++k) {
      if (!node_->output(k)) continue;
      Value* gradient = gradients_[node_->input(k)];
      // A node of its own: two results may be one value, and each has a name.
      Value* result = builder.Emit("Identity", {gradient ? gradient : builder.Zeros(node_->input(k)->type)});
      if (!builder.status().ok()) return builder.status();
      TakePlace(result, node_->output(k));
    }
    RETURN_IF_ERROR(builder.status());
    for (Node* made = last->next(); made;) {
      Node* next = made->next();
      graph_.Move(made, node_);
      made->kind = Kind::kF;
      made->origin = nullptr;
      made = next;
    }
    graph_.Erase(node_);
    return absl::OkStatus();
  }

 private:
  // What depends on an x in a differentiable way.
  void MarkNeeded() {
    for (size_t k = 0; k + 1 < node_->inputs().size(); ++k) needed_.insert(node_->inputs()[k]);
    for (const Node* node : forward_) {
      if (NoGradientFlows(node->op(), node->domain())) continue;
      const bool reached = std::any_of(node->inputs().begin(), node->inputs().end(),
                                       [&](const Value* in) { return needed_.contains(in); });
      for (const Value* output : node->outputs()) {
        if (reached && output && IsFloat(output->type.dtype)) needed_.insert(output);
      }
    }
  }

  absl::Status Differentiate(Node* node) {
    std::vector<Value*> output_gradients;
    bool reached = false;
    for (const Value* output : node->outputs()) {
      auto it = gradients_.find(output);
      output_gradients.push_back(output && it != gradients_.end() ? it->second : nullptr);
      reached |= output_gradients.back() != nullptr;
    }
    std::vector<bool> wanted;
    for (const Value* input : node->inputs()) wanted.push_back(input && needed_.contains(input));
    if (!reached || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return absl::OkStatus();
    GradientBuilder builder(graph_, node);
    ASSIGN_OR_RETURN(const std::vector<Value*> contributions,
                     DifferentiateNode(module_, builder, output_gradients, wanted));
    for (size_t i = 0; i < contributions.size(); ++i) {
      if (!contributions[i]) continue;
      Value*& sum = gradients_[node->input(static_cast<int>(i))];
      sum = sum ? builder.Emit("Add", {sum, contributions[i]}) : contributions[i];
    }
    return builder.status();
  }

  void TakePlace(Value* result, Value* old) {
    const std::string name = old->name();
    graph_.ReplaceAllUses(old, result);
    graph_.Rename(old, name + ".expanded");
    graph_.Rename(result, name);
    std::swap(result->output_name, old->output_name);
  }

  Module& module_;
  Graph& graph_;
  Node* node_;
  std::vector<Node*> forward_;
  absl::flat_hash_set<const Value*> needed_;
  absl::flat_hash_map<const Value*, Value*> gradients_;
};

}  // namespace

absl::StatusOr<bool> ExpandGradient(Module& module, const PassContext&) {
  bool changed = false;
  for (Node* node : module.graph.Nodes()) {
    if (!node->Is("Gradient", kPipecDomain)) continue;
    RETURN_IF_ERROR(Expander(module, node).Run());
    changed = true;
  }
  return changed;
}

}  // namespace pipec
