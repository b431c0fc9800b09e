// Takes out nodes that pass their operand on.
//   before: y = Identity(x); z = Relu(y)        after: z = Relu(x)
// Also Cast to the type a value has, Dropout of ratio 0 is lower-dropout's. An Identity stays where the model
// would lose the name of an output: its operand is an input, a weight, or another output. Level model; first
// in the table, so that no later pattern has to look through an Identity.
#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "passes/passes.h"

namespace pipec {
namespace {

bool PassesOn(const Node& node) {
  if (node.Is("Identity")) return true;
  if (node.Is("Cast")) return node.input(0)->type.dtype == node.output(0)->type.dtype;
  if (node.Is("Transpose")) {
    const std::vector<int64_t> axes = node.attributes.Ints("perm");
    return !axes.empty() && std::is_sorted(axes.begin(), axes.end());
  }
  // Same shape, same memory. Other axes would need the batch axis rule of the op that goes.
  if (node.Is("Reshape") || node.Is("Expand")) return node.input(0)->type.shape == node.output(0)->type.shape;
  return false;
}

}  // namespace

absl::StatusOr<bool> EliminateIdentity(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  absl::flat_hash_set<const Value*> outputs(graph.outputs.begin(), graph.outputs.end());
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!PassesOn(*node)) continue;
    Value* from = node->output(0);
    Value* to = node->input(0);
    std::string name;
    if (outputs.contains(from)) {
      if (to->kind() != ValueKind::kResult || outputs.contains(to)) continue;
      name = from->name();
      outputs.insert(to);
    }
    graph.ReplaceAllUses(from, to);
    graph.Erase(node);
    if (!name.empty()) graph.Rename(to, name);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
