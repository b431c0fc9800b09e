// Gradients of parameters are float32 from the sum on that makes them.
//   before:  dw16 = FusedMatMul(x, dy); dw = Cast(dw16); acc' = Accumulate(acc, dw)       x, dy, dw16: bfloat16
//   after:   dw = FusedMatMul<to = float32>(x, dy); acc' = Accumulate(acc, dw)
// Products of 16-bit floats are summed in float32 anyhow: not rounded in between, what a microbatch adds to the
// float32 accumulators has their precision. What was float32 and is rounded (MatMulWeightGrad's) stays as it was.
// ReduceSum, of biases, gets a float32 operand.
//
// Level model, for --precision other than fp32. After build-gradients, whose nodes it changes.
#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "passes/passes.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

constexpr int64_t kFloat = static_cast<int64_t>(DType::kFloat32);

// Makes `value` float32 where the backward nodes that compute it can; whether they could.
bool Widen(Graph& graph, Value* value) {
  Node* node = value->producer();
  if (!node || node->kind == Kind::kF || value->uses().size() != 1) return false;
  if (AliasOf(*node) == Alias::kView) {
    if (!Widen(graph, node->input(0))) return false;
  } else if (node->Is("FusedMatMul", kPipecDomain)) {
    node->attributes.Set("to", kFloat);
  } else if (node->Is("ReduceSum")) {
    if (Value* operand = node->input(0); !Widen(graph, operand)) {
      NodeSpec cast{.op = "Cast",
                    .name = absl::StrCat(node->name(), ".cast"),
                    .inputs = {operand},
                    .outputs = {{DType::kFloat32, operand->type.shape}},
                    .kind = node->kind,
                    .origin = node->origin};
      cast.attributes.Set("to", kFloat);
      node->SetInput(0, graph.AddNode(std::move(cast), node)->output(0));
    }
  } else {
    return false;
  }
  value->type.dtype = DType::kFloat32;
  return true;
}

// The cast of a float32 gradient to `value`, which nothing else reads; null if there is none.
Node* RoundingOf(const Value* value) {
  Node* node = value->producer();
  const bool rounds = node && node->kind != Kind::kF && node->Is("Cast") && value->uses().size() == 1 &&
                      node->input(0)->type.dtype == DType::kFloat32;
  return rounds ? node : nullptr;
}

}  // namespace

absl::StatusOr<bool> WidenSums(Module& module, const PassContext&) {
  if (module.precision == DType::kFloat32) return false;
  bool changed = false;
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF || !node->Is("Accumulate", kPipecDomain)) continue;
    Node* cast = node->input(1)->producer();
    if (!cast || !cast->Is("Cast") || cast->output(0)->uses().size() != 1) continue;
    Value* sum = cast->input(0);
    if (!IsSmallFloat(sum->type.dtype)) continue;
    if (Node* rounding = RoundingOf(sum)) {
      node->SetInput(1, rounding->input(0));
      module.graph.Erase(cast);
      module.graph.Erase(rounding);
    } else if (Widen(module.graph, sum)) {
      node->SetInput(1, sum);
      module.graph.Erase(cast);
    } else {
      continue;
    }
    changed = true;
  }
  return changed;
}

}  // namespace pipec
