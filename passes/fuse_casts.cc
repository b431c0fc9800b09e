// Casts around an op that computes in float32 become its own.
//   before:  x32 = Cast(x); y32 = LayerNormalization(x32, scale, bias); y = Cast(y32)        x, y bfloat16
//   after:   y = ai.pipec::LayerNormalization<to = bfloat16>(x, scale, bias)
// So no float32 form of an activation, of logits or of their gradients is written and read: the numbers are the same,
// and a GPU, whose memory these ops wait for, moves half or less. Which operands and results: compiler/ops/casts.h. A
// result only if nobody reads it in float32.
// For GPUs alone: the CPU's kernels widen into a workspace of their own, which would be no smaller than what it
// replaces, and is not in the plan.
//
// Level model. After gradients and the passes on casts, whose casts of one consumer each are then here; before
// split-backward, to which a node with its casts is one.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "compiler/cost/cluster.h"
#include "compiler/ops/casts.h"
#include "passes/keep_cut.h"
#include "passes/passes.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

class Fuser {
 public:
  Fuser(Graph& graph, const CompileOptions& options) : graph_(graph), options_(options) {}

  bool Fuse(Node* node, const OwnCasts& casts) {
    std::vector<Value*> operands(node->inputs().begin(), node->inputs().end());
    std::vector<Node*> widening;
    for (int k = casts.first; k <= casts.last; ++k) {
      Node* const cast = operands[k] ? operands[k]->producer() : nullptr;
      if (!cast || !cast->Is("Cast") || operands[k]->type.dtype != DType::kFloat32 ||
          !IsSmallFloat(cast->input(0)->type.dtype))
        continue;
      operands[k] = cast->input(0);
      if (!absl::c_linear_search(widening, cast)) widening.push_back(cast);
    }
    const std::vector<Node*> narrowing = casts.result ? NarrowingOf(*node->output(0)) : std::vector<Node*>();
    if (widening.empty() && narrowing.empty()) return false;
    Attributes attributes = node->attributes;
    const DType to = narrowing.empty() ? DType::kFloat32 : narrowing[0]->output(0)->type.dtype;
    attributes.Set(kCastTo, static_cast<int64_t>(to));
    node->Become(std::string(node->op()), kPipecDomain, std::move(operands));
    node->attributes = std::move(attributes);
    if (!narrowing.empty()) Narrow(node, narrowing);
    for (Node* cast : widening) {
      const Value* const wide = cast->output(0);
      if (!wide->uses().empty() || absl::c_linear_search(graph_.outputs, wide)) continue;
      Value* const small = cast->input(0);
      const std::string before = wide->name();
      Erase(cast, node);
      if (small->producer()) KeepCut(graph_, options_, before, small);
    }
    return true;
  }

  // Backward nodes of a cast that is gone are those of the node that took it in.
  void MoveOrigins() {
    for (Node* node : graph_.Nodes()) {
      if (const auto it = taken_in_.find(node->origin); it != taken_in_.end()) node->origin = it->second;
    }
  }

 private:
  // The casts of a float32 value to a 16-bit type, if all its uses are such.
  std::vector<Node*> NarrowingOf(const Value& value) const {
    std::vector<Node*> casts;
    if (value.type.dtype != DType::kFloat32 || absl::c_linear_search(graph_.outputs, &value)) return {};
    for (const Use& use : value.uses()) {
      if (!use.node->Is("Cast")) return {};
      const Value* const cast = use.node->output(0);
      if (!IsSmallFloat(cast->type.dtype) ||
          cast->type.dtype != value.uses()[0].node->output(0)->type.dtype ||
          absl::c_linear_search(graph_.outputs, cast))
        return {};
      casts.push_back(use.node);
    }
    return casts;
  }

  void Narrow(Node* node, const std::vector<Node*>& casts) {
    Value* const result = node->output(0);
    result->type.dtype = casts[0]->output(0)->type.dtype;
    for (Node* cast : casts) {
      const std::string before = cast->output(0)->name();
      graph_.ReplaceAllUses(cast->output(0), result);
      Erase(cast, node);
      KeepCut(graph_, options_, before, result);
    }
  }

  void Erase(Node* cast, Node* into) {
    taken_in_[cast] = into;
    graph_.Erase(cast);
  }

  Graph& graph_;
  const CompileOptions& options_;
  absl::flat_hash_map<const Node*, Node*> taken_in_;
};

}  // namespace

absl::StatusOr<bool> FuseCasts(Module& module, const PassContext& context) {
  if (!absl::c_all_of(context.options.cluster.devices, IsGpu)) return false;
  Fuser fuser(module.graph, context.options);
  bool changed = false;
  std::vector<std::pair<Node*, OwnCasts>> nodes;  // no cast, so that none of them is erased
  for (Node* node : module.graph.Nodes()) {
    if (const OwnCasts* casts = OwnCastsOf(node->op(), node->domain()))
      nodes.push_back({node, *casts});
  }
  for (const auto& [node, casts] : nodes) changed |= fuser.Fuse(node, casts);
  fuser.MoveOrigins();
  return changed;
}

}  // namespace pipec
