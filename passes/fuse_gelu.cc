// Gelu that is spelled out becomes the op.
//   before: u = Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788); y = Mul(Mul(x, 0.5), Add(Tanh(u), 1))
//   after:  y = Gelu<approximate = "tanh">(x)
// The same for y = Mul(Mul(x, Add(Erf(Div(x, 1.4142)), 1)), 0.5), which is the exact form; in whatever order sums and
// products stand. Exporters write it so for opsets before 20, and for models that spell it (GPT-2's). One node reads x
// and keeps x alone for the gradient, where the others read and keep four to eight tensors of its size.
// Level model; after folding, which makes factors constants; before fuse-matmul-gelu, which is for the op.
#include <string>

#include "passes/gelu_pattern.h"
#include "passes/passes.h"

namespace pipec {

absl::StatusOr<bool> FuseGelu(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  graph.NumberNodes();
  std::vector<GeluPattern> patterns;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("Erf") && !node->Is("Tanh")) continue;
    if (auto found = FindGelu(node, graph.outputs)) patterns.push_back(*std::move(found));
  }
  for (const GeluPattern& found : patterns) {
    found.last->Become("Gelu", "", {found.x});
    found.last->attributes = {};
    if (found.tanh) found.last->attributes.Set("approximate", std::string("tanh"));
    for (Node* node : found.gone) graph.Erase(node);
  }
  return !patterns.empty();
}

}  // namespace pipec
