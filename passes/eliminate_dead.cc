// Takes out what nobody needs: nodes that lead to no output of the model, and constants without users.
// Inputs and parameters stay, so that data and weights keep fitting; the notes name the inputs that nothing
// uses, and the parameters that nothing uses any more (import names those that nothing used at all).
// Level model; after folding left shape arithmetic without users, before fusion, which asks for single users.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// Nodes from which an output of the model can be reached.
absl::flat_hash_set<const Node*> Needed(const Module& module) {
  absl::flat_hash_set<const Node*> needed;
  std::vector<const Node*> open;
  auto need = [&](const Value* value) {
    if (value && value->producer() && needed.insert(value->producer()).second)
      open.push_back(value->producer());
  };
  for (const Value* output : module.graph.outputs) need(output);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Value* input : node->inputs()) need(input);
  }
  return needed;
}

absl::flat_hash_set<const Value*> UsedParameters(const Graph& graph) {
  absl::flat_hash_set<const Value*> used;
  for (const Value* value : graph.Values()) {
    if (value->kind() == ValueKind::kParameter && !value->uses().empty()) used.insert(value);
  }
  return used;
}

void NoteUnused(Module& module, absl::string_view what, std::vector<std::string> names) {
  if (names.empty()) return;
  const int count = static_cast<int>(names.size());
  if (count > 4) names.resize(4);
  const std::string note =
      absl::StrCat(count, " ", what, "(s) that no output depends on: ", absl::StrJoin(names, ", "),
                   count > 4 ? ", ..." : "");
  if (std::find(module.notes.begin(), module.notes.end(), note) == module.notes.end())
    module.notes.push_back(note);
}

}  // namespace

absl::StatusOr<bool> EliminateDead(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  const absl::flat_hash_set<const Node*> needed = Needed(module);
  const absl::flat_hash_set<const Value*> used = UsedParameters(graph);
  bool changed = false;
  for (Node *node = graph.last_node(), *previous; node; node = previous) {
    previous = node->previous();
    if (needed.contains(node)) continue;
    graph.Erase(node);
    changed = true;
  }
  const absl::flat_hash_set<const Value*> outputs(graph.outputs.begin(), graph.outputs.end());
  std::vector<std::string> inputs, parameters;
  for (Value* value : graph.Values()) {
    if (value->producer() || !value->uses().empty() || outputs.contains(value)) continue;
    if (value->kind() == ValueKind::kInput) inputs.push_back(value->name());
    if (used.contains(value)) parameters.push_back(value->name());
    if (value->kind() != ValueKind::kConstant) continue;
    graph.Erase(value);
    changed = true;
  }
  NoteUnused(module, "input", std::move(inputs));
  NoteUnused(module, "parameter", std::move(parameters));
  return changed;
}

}  // namespace pipec
