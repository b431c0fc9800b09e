// Gelu of a product becomes part of it, where nothing learns.
//   before: t = FusedMatMul(x, W, b); y = Gelu<approximate = "tanh">(t)
//   after:  y = ai.pipec::FusedMatMul<activation = "GeluTanh">(x, W, b)
// So t is neither written nor read, and in 16 bits not rounded. Only if nothing else uses t. A cut at t is one at y.
//
// Mode infer only. In training t is needed for the gradient, so it would be written all the same; and where memory is
// short y is what runs again (recompute-forward): from t that is a few FLOP an element, fused with its product it would
// be all of that one. What training gains is in fuse-matmul-gelu-grad.
// Only the form of tanh: libraries of matrix products have no other (cuBLASLt's GELU). Relu stays a node: theirs is
// max(x, 0), and so 0 of NaN (cublasLt.h, RELU; NVIDIA's forum, topic 329783; oneDNN's vectors likewise), but a number
// that is none must show; and it lies in its operand's memory as a node, too.
// Level model; before the cut, as every change of arithmetic; after fuse-matmul-bias, whose products have biases too.
#include <string>

#include "absl/algorithm/container.h"
#include "passes/keep_cut.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// Whether the node is one that FusedMatMul can be: of Gemm's addends only a bias.
bool IsProduct(const Node* node) {
  if (!node) return false;
  if (node->Is("Gemm")) {
    const TensorType& y = node->output(0)->type;
    return !node->input(2) || (node->attributes.Float("beta", 1) == 1 &&
                               node->input(2)->type == TensorType{y.dtype, {y.shape.back()}});
  }
  return node->Is("MatMul") || (node->Is("FusedMatMul", kPipecDomain) && !node->attributes.Has("activation"));
}

void Fuse(Graph& graph, Node* gelu) {
  Node* const product = gelu->input(0)->producer();
  Attributes attributes = product->attributes;
  if (!product->Is("FusedMatMul", kPipecDomain)) {
    attributes = {};
    attributes.Set("trans_a", product->attributes.Int("transA"));
    attributes.Set("trans_b", product->attributes.Int("transB"));
    attributes.Set("alpha", product->attributes.Float("alpha", 1));
  }
  attributes.Set("activation", std::string("GeluTanh"));
  gelu->Become("FusedMatMul", kPipecDomain, {product->inputs().begin(), product->inputs().end()});
  gelu->attributes = std::move(attributes);
  graph.Erase(product);
}

}  // namespace

absl::StatusOr<bool> FuseMatmulGelu(Module& module, const PassContext& context) {
  if (context.options.mode != Mode::kInfer) return false;
  Graph& graph = module.graph;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("Gelu") || node->attributes.String("approximate") != "tanh") continue;
    const Value* const product = node->input(0);
    if (!IsFloat(product->type.dtype) || !IsProduct(product->producer()) || product->uses().size() != 1 ||
        absl::c_linear_search(graph.outputs, product)) {
      continue;
    }
    const std::string name = product->name();
    Fuse(graph, node);
    KeepCut(graph, context.options, name, node->output(0));
    changed = true;
  }
  return changed;
}

}  // namespace pipec
