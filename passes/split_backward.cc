// Tells the backward nodes apart: I, what the gradient of an activation needs, and W, what flows into
// accumulators only.
//
//   dx = FusedMatMul(dy, w)    I: the node before needs it
//   dw = FusedMatMul(x, dy)    W: can wait, no other stage needs it
//   acc' = Accumulate(acc, dw) W
//
// Level training, kept. An activation is a value that depends on an input of the model; what is computed from
// parameters alone (a transposed weight) is none, so its gradient is W too. Kinds only change here: the order
// of the nodes stays. Stands after all backward nodes exist and before the partitioner, which weighs I and W
// apart.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// Forward nodes with an input of the model among what they depend on.
absl::flat_hash_set<const Node*> NodesOfActivations(const std::vector<Node*>& nodes) {
  absl::flat_hash_set<const Node*> found;
  for (const Node* node : nodes) {
    if (node->kind != Kind::kF) continue;
    for (const Value* input : node->inputs()) {
      if (input && (input->kind() == ValueKind::kInput || found.contains(input->producer())))
        found.insert(node);
    }
  }
  return found;
}

bool Feeds(const Node& node, const Node& consumer) {
  return std::any_of(consumer.inputs().begin(), consumer.inputs().end(),
                     [&](const Value* input) { return input && input->producer() == &node; });
}

// Whether the gradient that `maker` made is that of another forward node's output, an activation, on its way
// to `use`: `use` belongs to that node, or to one before it, to which it handed the gradient on as it was
// (Add).
bool IsPassedOn(const Node& maker, const Node& use, const absl::flat_hash_set<const Node*>& activations) {
  if (use.origin == maker.origin) return false;
  return activations.contains(use.origin) ||
         (use.origin && maker.origin && !Feeds(*use.origin, *maker.origin));
}

bool IsBackward(const Node& node) { return node.kind == Kind::kI || node.kind == Kind::kW; }

}  // namespace

absl::StatusOr<bool> SplitBackward(Module& module, const PassContext&) {
  const std::vector<Node*> nodes = module.graph.Nodes();
  const absl::flat_hash_set<const Node*> activations = NodesOfActivations(nodes);
  bool changed = false;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node* node = *it;
    if (!IsBackward(*node)) continue;
    Kind kind = Kind::kW;
    for (const Value* output : node->outputs()) {
      if (!output) continue;
      for (const Use& use : output->uses()) {
        if (!IsBackward(*use.node)) continue;
        if (use.node->kind == Kind::kI || IsPassedOn(*node, *use.node, activations)) kind = Kind::kI;
      }
    }
    changed |= node->kind != kind;
    node->kind = kind;
  }
  return changed;
}

}  // namespace pipec
