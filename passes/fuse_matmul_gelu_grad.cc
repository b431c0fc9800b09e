// The gradient of Gelu becomes part of the product that hands it down.
//   forward: y = Gelu<approximate = "tanh">(x); z = MatMul(y, W)
//   before:  dy = FusedMatMul(dz, W); dx = GeluGrad(dy, x)
//   after:   dx = ai.pipec::FusedMatMul<activation = "GeluTanhGrad">(dz, W, -, x)
// So dy is neither written nor read, and in 16 bits not rounded. Only if y has no other use: else dy is a sum, each
// part of which belongs to a use of its own. PyTorch's exporters reshape x and y: then dy is, too, and dx in its place.
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

#include "compiler/ops/op_info.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// The value that another one, of other shape perhaps, lies in as it is made; null if `alone` and others read it too.
Value* BehindViews(Value* value, bool alone) {
  while (value->producer() && AliasOf(*value->producer()) == Alias::kView &&
         (!alone || value->uses().size() == 1))
    value = value->producer()->input(0);
  return alone && value->uses().size() != 1 ? nullptr : value;
}

// The product that hands a gradient down to this node alone, null if it is none.
Node* ProductOf(const Node& gelu_grad) {
  const Value* const dy = BehindViews(gelu_grad.input(0), true);
  Node* const product = dy ? dy->producer() : nullptr;
  if (!product || !product->Is("FusedMatMul", kPipecDomain)) return nullptr;
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
    Value* x = node->input(1);
    if (product && x->type != product->output(0)->type) x = BehindViews(x, false);
    if (!product || x->type != product->output(0)->type) continue;
    product->Become("FusedMatMul", kPipecDomain, {product->input(0), product->input(1), nullptr, x});
    product->attributes.Set("activation", std::string("GeluTanhGrad"));
    graph.ReplaceAllUses(node->output(0), node->input(0));
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
