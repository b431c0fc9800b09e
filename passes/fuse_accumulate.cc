// What a microbatch adds to the gradient of a parameter is added by the node that makes it.
//   before: dw, db = MatMulWeightGrad(dy, x) W; sw' = Accumulate(sw, dw) W; sb' = Accumulate(sb, db) W
//   after:  sw', sb' = MatMulWeightGrad<accumulate = 1>(dy, x, sw, sb) W
// So no microbatch has a gradient of its own, as large as the parameter, that is written, read and added: Megatron-LM's
// gradient accumulation fusion (its option --no-gradient-accumulation-fusion turns it off). Only where every result
// goes into a sum of its type and nowhere else, and every device's kernel can (compiler/ops/op_info.h).
// Level training. After split-backward, which tells what is W; before the cut, as every change of arithmetic.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/sums.h"
#include "compiler/ops/op_info.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// The node that adds the value, and nothing else, to a sum of its type; null if there is none, or it has other uses.
Node* AdderOf(const Value& value) {
  if (value.uses().size() != 1) return nullptr;
  const auto& [node, operand] = value.uses()[0];
  const bool adds = operand == 1 && node->kind == Kind::kW && node->Is("Accumulate", kPipecDomain) &&
                    node->input(0)->type == value.type;
  return adds ? node : nullptr;
}

// One a result; empty unless there is one for each that the node has.
std::vector<Node*> AddersOf(const Node& node) {
  std::vector<Node*> adders;
  for (const Value* result : node.outputs()) {
    adders.push_back(result ? AdderOf(*result) : nullptr);
    if (result && !adders.back()) return {};
  }
  return adders;
}

}  // namespace

absl::StatusOr<bool> FuseAccumulate(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  std::vector<std::pair<Node*, Value*>> fused;  // what added, and what is the sum now
  for (Node* node : graph.Nodes()) {
    if (node->kind != Kind::kW || !CanAccumulate(node->op(), node->domain()) || Accumulates(*node)) continue;
    // A product adds its bias instead, and is not activated in a sum.
    if (node->Is("FusedMatMul", kPipecDomain) && (node->inputs().size() > 2 || node->attributes.Has("activation")))
      continue;
    const std::vector<Node*> adders = AddersOf(*node);
    if (adders.empty()) continue;
    std::vector<Value*> operands(node->inputs().begin(), node->inputs().end());
    for (const Node* adder : adders) operands.push_back(adder ? adder->input(0) : nullptr);
    node->Become(std::string(node->op()), node->domain(), std::move(operands));
    node->attributes.Set(kAccumulate, int64_t{1});
    for (size_t k = 0; k < adders.size(); ++k) {
      if (adders[k]) fused.push_back({adders[k], node->output(static_cast<int>(k))});
    }
  }
  absl::flat_hash_map<const Value*, Value*> sums;
  for (const auto& [adder, sum] : fused) sums[adder->output(0)] = sum;
  for (TrainedParameter& trained : module.training.parameters) {
    for (Value*& sum : trained.accumulated) {
      if (const auto it = sums.find(sum); it != sums.end()) sum = it->second;
    }
  }
  for (const auto& [adder, sum] : fused) {
    const std::string name = adder->output(0)->name();
    graph.ReplaceAllUses(adder->output(0), sum);
    graph.Erase(adder);
    graph.Rename(sum, name);
  }
  return !fused.empty();
}

}  // namespace pipec
