// The bias that is added to a product becomes the product's third operand.
//   before: t = MatMul(x, W); y = Add(t, b)                  W [k, n], b [n]
//   after:  y = ai.pipec::FusedMatMul(x, W, b)
// So a product's result is written once, and in 16 bits rounded once; and the gradients of W and b are one node.
// Only if nothing else uses t. A cut at t is one at y: the arithmetic is the same wherever the cut is.
// Level model; before the cut, as every change of arithmetic, and before gradients. After fuse-transpose-matmul,
// whose products have biases too; before split-parameter-ops, which asks for the uses of parameters.
#include <string>

#include "absl/container/flat_hash_set.h"
#include "passes/keep_cut.h"
#include "passes/passes.h"

namespace pipec {
namespace {

bool IsBias(const Value& value, const TensorType& sum) {
  const bool fixed = value.kind() == ValueKind::kParameter || value.kind() == ValueKind::kConstant;
  return fixed && !sum.shape.empty() && value.type == TensorType{sum.dtype, {sum.shape.back()}};
}

// Whether the value is a product by a matrix whose columns are the last axis of the value.
bool IsProduct(const Value& value) {
  const Node* node = value.producer();
  if (!node || !IsFloat(value.type.dtype)) return false;
  const bool product = node->Is("MatMul") || (node->Is("FusedMatMul", kPipecDomain) && !node->input(2));
  return product && node->input(1)->type.shape.size() == 2;
}

// The operand of a sum that is the product; -1 if there is none, or it is in use elsewhere.
int ProductOf(const Node& sum, const absl::flat_hash_set<const Value*>& outputs) {
  for (int k = 0; k < 2; ++k) {
    const Value *product = sum.input(k), *bias = sum.input(1 - k);
    if (IsProduct(*product) && IsBias(*bias, sum.output(0)->type) && product->type == sum.output(0)->type &&
        product->uses().size() == 1 && !outputs.contains(product)) {
      return k;
    }
  }
  return -1;
}

void Fuse(Graph& graph, Node* sum, int operand) {
  Value* const bias = sum->input(1 - operand);
  Node* const product = sum->input(operand)->producer();
  Attributes attributes = product->attributes;
  if (product->Is("MatMul")) {
    attributes.Set("trans_a", int64_t{0});
    attributes.Set("trans_b", int64_t{0});
    attributes.Set("alpha", 1.0f);
  }
  sum->Become("FusedMatMul", kPipecDomain, {product->input(0), product->input(1), bias});
  sum->attributes = std::move(attributes);
  graph.Erase(product);
}

}  // namespace

absl::StatusOr<bool> FuseMatmulBias(Module& module, const PassContext& context) {
  Graph& graph = module.graph;
  const absl::flat_hash_set<const Value*> outputs(graph.outputs.begin(), graph.outputs.end());
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("Add")) continue;
    const int operand = ProductOf(*node, outputs);
    if (operand < 0) continue;
    const std::string product = node->input(operand)->name();
    Fuse(graph, node, operand);
    KeepCut(graph, context.options, product, node->output(0));
    changed = true;
  }
  return changed;
}

}  // namespace pipec
