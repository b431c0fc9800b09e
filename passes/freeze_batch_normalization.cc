// Outside of training a BatchNormalization normalises with its running statistics, also where an exporter wrote its
// training form; a model that hands the moved statistics on means that form, and keeps it.
//   before:  y, m', v' = BatchNormalization<training_mode = 1>(x, scale, bias, m, v)    m', v' unused
//   after:   y = BatchNormalization<training_mode = 0>(x, scale, bias, m, v)
// Level model, mode infer only. Beside lower-dropout, which does the same for Dropout; before the batch axis,
// because the training form mixes samples.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "runtime/base/counted.h"

namespace pipec {
namespace {

bool IsUsed(const Graph& graph, const Value* value) {
  return value && (!value->uses().empty() ||
                   std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end());
}

void Freeze(Graph& graph, Node* node) {
  NodeSpec spec{.op = node->op(),
                .inputs = {node->inputs().begin(), node->inputs().end()},
                .attributes = node->attributes,
                .outputs = {node->output(0)->type}};
  spec.attributes.Set("training_mode", int64_t{0});
  const std::string name = node->name(), result = node->output(0)->name();
  Node* frozen = graph.AddNode(std::move(spec), node);
  frozen->output(0)->batch_axis = node->output(0)->batch_axis;
  graph.ReplaceAllUses(node->output(0), frozen->output(0));
  graph.Erase(node);
  graph.Rename(frozen->output(0), result);
}

}  // namespace

absl::StatusOr<bool> FreezeBatchNormalization(Module& module, const PassContext&) {
  if (module.mode != Mode::kInfer) return false;
  int frozen = 0;
  for (Node* node : module.graph.Nodes()) {
    if (!node->Is("BatchNormalization") || node->attributes.Int("training_mode") == 0) continue;
    if (IsUsed(module.graph, node->output(1)) || IsUsed(module.graph, node->output(2))) continue;
    Freeze(module.graph, node);
    ++frozen;
  }
  if (frozen == 0) return false;
  module.notes.push_back(
      absl::StrCat(Counted(frozen, "BatchNormalization node", "BatchNormalization nodes"),
                   " in training form: outside of training the running statistics are used"));
  return true;
}

}  // namespace pipec
