// Runs forward nodes of a stage again in front of its backward nodes, so that their results need not be kept.
//
//   before:  F: x -> A -> h -> B -> y          I: dh = B'(dy, h), dx = A'(dh, x)
//   after:   F: x -> A -> h -> B -> y          I: h' = A(x), dh = B'(dy, h'), dx = A'(dh, x)
//
// partition-stages chose segments of the stage's forward nodes (Stage::recomputed); each is run again as a whole before
// its first backward node. What the stage was sent, its inputs, what crosses from segment to segment and what the
// segment keeps stays (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174). The second
// run gives the same numbers: random ops draw by the key in their attributes. Level staged, kept; after messages,
// so that what arrives is no node to run again.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/node_cost.h"
#include "passes/passes.h"
#include "passes/stage_forward.h"

namespace pipec {
namespace {

using Copies = absl::flat_hash_map<const Value*, Value*>;

void Copy(Module& module, const DeviceProfile& device, Node& node, Node* before, Copies& copies) {
  NodeSpec spec{.op = node.op(), .domain = node.domain(), .name = absl::StrCat(node.name(), ".again")};
  for (Value* input : node.inputs()) {
    const auto it = copies.find(input);
    spec.inputs.push_back(it == copies.end() ? input : it->second);
  }
  for (const Value* output : node.outputs()) {
    spec.outputs.push_back(output ? output->type : TensorType{});
    spec.output_names.push_back(output ? absl::StrCat(output->name(), ".again") : "");
  }
  spec.attributes = node.attributes;
  spec.kind = Kind::kI;
  spec.stage = node.stage;
  spec.origin = &node;
  Node* copy = module.graph.AddNode(std::move(spec), before);
  for (int k = 0; k < static_cast<int>(node.outputs().size()); ++k) {
    if (!node.output(k)) continue;
    copy->output(k)->batch_axis = node.output(k)->batch_axis;
    copies.emplace(node.output(k), copy->output(k));
  }
  module.stages[node.stage].times.i += NodeSeconds(*copy, device);
}

void RunAgain(Module& module, const DeviceProfile& device, const StageForward& stage,
              const RecomputedSegment& segment) {
  const int begin = stage.PlaceOf(*segment.nodes.front()), end = stage.PlaceOf(*segment.nodes.back()) + 1;
  std::vector<char> kept(stage.nodes().size(), 0);
  for (const Node* node : segment.kept) kept[stage.PlaceOf(*node)] = 1;
  const std::vector<Node*> users = stage.UsersOf(begin, end, kept);
  if (users.empty()) return;
  Copies copies;
  for (const int place : stage.ToRunAgain(begin, end, kept))
    Copy(module, device, *stage.nodes()[place], users.front(), copies);
  for (Node* node : users) {
    for (int k = 0; k < static_cast<int>(node->inputs().size()); ++k) {
      if (const auto it = copies.find(node->input(k)); it != copies.end()) node->SetInput(k, it->second);
    }
  }
}

}  // namespace

absl::StatusOr<bool> RecomputeForward(Module& module, const PassContext& context) {
  std::vector<int> stages;
  for (int s = 0; s < static_cast<int>(module.stages.size()); ++s) {
    if (!module.stages[s].recomputed.empty()) stages.push_back(s);
  }
  if (stages.empty()) return false;
  std::vector<std::vector<Node*>> forward(module.stages.size()), backward(module.stages.size());
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && !node->Is("Message", kPipecDomain)) forward[node->stage].push_back(node);
    if (node->kind == Kind::kI || node->kind == Kind::kW) backward[node->stage].push_back(node);
  }
  for (const int s : stages) {
    const StageForward stage(std::move(forward[s]), std::move(backward[s]));
    for (const RecomputedSegment& segment : module.stages[s].recomputed)
      RunAgain(module, context.options.cluster.devices[module.stages[s].rank], stage, segment);
  }
  module.graph.NumberNodes();
  module.notes.push_back(absl::StrCat("stage", stages.size() > 1 ? "s " : " ", absl::StrJoin(stages, ", "),
                                      stages.size() > 1 ? " run" : " runs",
                                      " forward nodes again for the backward pass (--recompute)"));
  return true;
}

}  // namespace pipec
