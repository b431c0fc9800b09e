// Gelu of a product becomes part of it, where nothing learns.
//   before: t = FusedMatMul(x, W, b); y = Gelu<approximate = "tanh">(t)
//   after:  y = ai.pipec::FusedMatMul<activation = "GeluTanh">(x, W, b)
// So t is neither written nor read, and in 16 bits not rounded. Only if nothing else uses t. A cut at t is one at y.
// PyTorch's exporters reshape t before: that is of y then.
//
// Mode infer only. In training t is needed for the gradient, so it would be written all the same; and where memory is
// short y is what runs again (recompute-forward): from t that is a few FLOP an element, fused with its product it would
// be all of that one. What training gains is in fuse-matmul-gelu-grad.
// Only the form of tanh: libraries of matrix products have no other (cuBLASLt's GELU). Relu stays a node: theirs is
// max(x, 0), and so 0 of NaN (cublasLt.h, RELU; NVIDIA's forum, topic 329783; oneDNN's vectors likewise), but a number
// that is none must show; and it lies in its operand's memory as a node, too.
// Level model; before the cut, as every change of arithmetic; after fuse-matmul-bias, whose products have biases too.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/ops/op_info.h"
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

// What the value is a view of, if nobody reads anything between.
Value* BehindViews(Value* value, const std::vector<Value*>& outputs) {
  const auto is_read_once = [&](const Value* v) {
    return v->uses().size() == 1 && !absl::c_linear_search(outputs, v);
  };
  while (is_read_once(value) && value->producer() && AliasOf(*value->producer()) == Alias::kView)
    value = value->producer()->input(0);
  return is_read_once(value) ? value : nullptr;
}

void Activate(Node* product) {
  Attributes attributes = product->attributes;
  if (!product->Is("FusedMatMul", kPipecDomain)) {
    attributes = {};
    attributes.Set("trans_a", product->attributes.Int("transA"));
    attributes.Set("trans_b", product->attributes.Int("transB"));
    attributes.Set("alpha", product->attributes.Float("alpha", 1));
  }
  attributes.Set("activation", std::string("GeluTanh"));
  product->Become("FusedMatMul", kPipecDomain, {product->inputs().begin(), product->inputs().end()});
  product->attributes = std::move(attributes);
}

}  // namespace

absl::StatusOr<bool> FuseMatmulGelu(Module& module, const PassContext& context) {
  if (context.options.mode != Mode::kInfer) return false;
  Graph& graph = module.graph;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!node->Is("Gelu") || node->attributes.String("approximate") != "tanh") continue;
    const Value* const product = BehindViews(node->input(0), graph.outputs);
    if (!product || !IsFloat(product->type.dtype) || !IsProduct(product->producer())) continue;
    Activate(product->producer());
    Value *const result = node->input(0), *const y = node->output(0);
    const std::string before = result->name(), name = y->name();
    result->output_name = y->output_name;
    graph.ReplaceAllUses(y, result);
    graph.Erase(node);
    graph.Rename(result, name);
    KeepCut(graph, context.options, before, result);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
