// Backward nodes cast the 16-bit form of a value once more instead of keeping its float32 form.
//   before:  F x32 = Cast(x); s = Softmax(x32); s16 = Cast(s); y = MatMul(s16, v)    I dx32 = SoftmaxGrad(ds, s)
//   after:   F the same                                         I s32 = Cast(s16); dx32 = SoftmaxGrad(ds, s32)
// So an activation is kept in 16 bits, and travels so, wherever it has such a form: what was cast to float32
// for a node comes back as it was; what was cast from float32 comes back rounded, as what was computed with it.
// One cast a consumer, which is I or W as the consumer will be.
//
// Level model, for --precision other than fp32. After build-gradients, whose nodes it changes; before the split
// into I and W and the cut.
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

bool Widens(const Node& node) {
  return node.Is("Cast") && IsSmallFloat(node.input(0)->type.dtype) &&
         node.output(0)->type.dtype == DType::kFloat32;
}

// The 16-bit form of a forward node's float32 result; null if there is none.
Value* SmallForm(const Value& value) {
  const Node* producer = value.producer();
  if (!producer || producer->kind != Kind::kF || value.type.dtype != DType::kFloat32) return nullptr;
  if (Widens(*producer)) return producer->input(0);
  for (const Use& use : value.uses()) {
    if (use.node->kind != Kind::kF || !use.node->Is("Cast")) continue;
    if (IsSmallFloat(use.node->output(0)->type.dtype)) return use.node->output(0);
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> RecomputeCasts(Module& module, const PassContext&) {
  if (module.precision == DType::kFloat32) return false;
  Graph& graph = module.graph;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (node->kind != Kind::kI && node->kind != Kind::kW) continue;
    for (int k = 0; k < static_cast<int>(node->inputs().size()); ++k) {
      Value* value = node->input(k);
      Value* small = value ? SmallForm(*value) : nullptr;
      if (!small) continue;
      NodeSpec spec{.op = "Cast",
                    .name = absl::StrCat(node->name(), ".cast"),
                    .inputs = {small},
                    .outputs = {value->type},
                    .kind = node->kind,
                    .origin = node->origin};
      spec.attributes.Set("to", static_cast<int64_t>(DType::kFloat32));
      node->SetInput(k, graph.AddNode(std::move(spec), node)->output(0));
      changed = true;
    }
  }
  return changed;
}

}  // namespace pipec
