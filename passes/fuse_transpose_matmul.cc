// A transpose of the last two axes disappears into the product that reads it.
//   before: t = Transpose<perm = [1, 0]>(W); y = MatMul(x, t)
//   after:  y = ai.pipec::FusedMatMul<trans_b = 1>(x, W)
// A transpose with several users goes into each product; it stays if others use it too.
// Level model; before the cut, as every change of arithmetic, and before gradients, which then need no
// transposes either.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/passes.h"

namespace pipec {
namespace {

bool SwapsLastTwo(const Node& node) {
  if (!node.Is("Transpose")) return false;
  const int rank = static_cast<int>(node.input(0)->type.shape.size());
  if (rank < 2) return false;
  std::vector<int64_t> axes = node.attributes.Ints("perm");
  if (axes.empty()) return rank == 2;  // the default reverses all axes
  std::swap(axes[rank - 1], axes[rank - 2]);
  for (int i = 0; i < rank; ++i) {
    if (axes[i] != i) return false;
  }
  return true;
}

Node* FusableTranspose(const Value* operand) {
  Node* producer = operand->producer();
  return producer && SwapsLastTwo(*producer) ? producer : nullptr;
}

void BecomeFused(Node* node) {
  if (node->Is("FusedMatMul", kPipecDomain)) return;
  node->Become("FusedMatMul", kPipecDomain, {node->input(0), node->input(1)});
  node->attributes.Set("trans_a", int64_t{0});
  node->attributes.Set("trans_b", int64_t{0});
  node->attributes.Set("alpha", 1.0f);
}

}  // namespace

absl::StatusOr<bool> FuseTransposeMatmul(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  const absl::flat_hash_set<const Value*> outputs(graph.outputs.begin(), graph.outputs.end());
  std::vector<Node*> transposes;
  absl::flat_hash_set<Node*> seen;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("MatMul") && !node->Is("FusedMatMul", kPipecDomain)) continue;
    for (int i = 0; i < 2; ++i) {
      Node* transpose = FusableTranspose(node->input(i));
      if (!transpose) continue;
      BecomeFused(node);
      const char* flag = i == 0 ? "trans_a" : "trans_b";
      node->SetInput(i, transpose->input(0));
      node->attributes.Set(flag, 1 - node->attributes.Int(flag, 0));
      if (seen.insert(transpose).second) transposes.push_back(transpose);
      changed = true;
    }
  }
  for (Node* transpose : transposes) {
    if (transpose->output(0)->uses().empty() && !outputs.contains(transpose->output(0)))
      graph.Erase(transpose);
  }
  return changed;
}

}  // namespace pipec
