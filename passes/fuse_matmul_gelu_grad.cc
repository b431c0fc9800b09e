// The gradient of Gelu becomes part of the product that hands it down.
//   forward: y = Gelu<approximate = "tanh">(x); z = MatMul(y, W)
//   before:  dy = FusedMatMul(dz, W); dx = GeluGrad(dy, x)
//   after:   dx = ai.pipec::FusedMatMul<activation = "GeluTanhGrad">(dz, W, -, x)
// So dy is neither written nor read, and in 16 bits not rounded. Only if y has no other use: else dy is a sum, each
// part of which belongs to a use of its own.
//
// The node stays with the product, so its stage is that of z, whatever the cut: numbers do not depend on where that is.
// A cut between y and z then sends x beside y, and dx where dy went. So only where z has at most half of y's elements,
// as in a transformer's block: a cut there is the dearest one around, which the partitioner sees and the user may still
// ask for; in a chain of layers of one width it is as good as any, and there the gradients stay apart.
// Gelu itself stays a node (fuse-matmul-gelu says why), the form of tanh only and no Relu: of its gradient cuBLASLt
// wants a mask of bits that its own Relu made.
//
// Level model; before the cut, as every change of arithmetic. After widen-sums, which asks for products of 16-bit
// floats to be float32; before split-backward, to which this is one node.
#include <string>

#include "passes/passes.h"

namespace pipec {
namespace {

// The product that hands a gradient down to this node alone, null if it is none.
Node* ProductOf(const Node& gelu_grad) {
  const Value* const dy = gelu_grad.input(0);
  Node* const product = dy->producer();
  if (!product || !product->Is("FusedMatMul", kPipecDomain) || dy->uses().size() != 1) return nullptr;
  if (product->input(2) || product->attributes.Has("activation") || product->attributes.Has("to"))
    return nullptr;
  const Value& z = *product->origin->output(0);
  return 2 * z.type.elements() <= dy->type.elements() ? product : nullptr;
}

}  // namespace

absl::StatusOr<bool> FuseMatmulGeluGrad(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("GeluGrad", kPipecDomain) || node->attributes.String("approximate") != "tanh") continue;
    Node* const product = ProductOf(*node);
    if (!product) continue;
    product->Become("FusedMatMul", kPipecDomain,
                    {product->input(0), product->input(1), nullptr, node->input(1)});
    product->attributes.Set("activation", std::string("GeluTanhGrad"));
    graph.ReplaceAllUses(node->output(0), product->output(0));
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
