// Runs forward nodes of a stage again in front of its backward nodes, so that their results need not be kept.
//
//   before:  F: x -> A -> h -> B -> y          I: dh = B'(dy, h), dx = A'(dh, x)
//   after:   F: x -> A -> h -> B -> y          I: h' = A(x), dh = B'(dy, h'), dx = A'(dh, x)
//
// The forward nodes of a stage are cut into segments (compiler/memory/segments.h); each is run again as a whole before
// its first backward node. What the stage was sent, its inputs, and what crosses from segment to segment is kept
// (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174). The second run gives the same
// numbers: random ops draw by the key in their attributes. Level staged, kept; after messages, which say what a stage
// was sent, in the stages that partition-stages chose.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/node_cost.h"
#include "compiler/memory/segments.h"
#include "compiler/ops/op_info.h"
#include "passes/passes.h"

namespace pipec {
namespace {

bool IsBackward(const Node& node) { return node.kind == Kind::kI || node.kind == Kind::kW; }

class StageRecompute {
 public:
  // `forward`: the stage's forward nodes, messages apart, and `backward` its backward nodes, in execution order.
  StageRecompute(Module& module, const DeviceProfile& device, const std::vector<Node*>& forward,
                 const std::vector<Node*>& backward)
      : module_(module), device_(device), forward_(forward), backward_(backward) {
    for (int k = 0; k < static_cast<int>(forward.size()); ++k) place_[forward[k]] = k;
  }

  void Run(int in_flight) {
    const std::vector<int> cuts = CutSegments(Describe(in_flight));
    segment_.resize(forward_.size());
    for (int k = 0; k < static_cast<int>(forward_.size()); ++k) {
      segment_[k] = static_cast<int>(std::lower_bound(cuts.begin(), cuts.end(), k) - cuts.begin());
    }
    for (int s = 0; s <= static_cast<int>(cuts.size()); ++s) RunAgain(s);
  }

 private:
  // Where among the forward nodes a node stands that uses one of their values: itself, or its forward node.
  int PlaceOf(const Node& user) const {
    const auto it = place_.find(IsBackward(user) ? user.origin : &user);
    return it == place_.end() ? -1 : it->second;
  }

  SegmentProblem Describe(int in_flight) const {
    const int nodes = static_cast<int>(forward_.size());
    SegmentProblem problem{std::vector<int64_t>(nodes, 0), std::vector<int64_t>(std::max(nodes - 1, 0), 0),
                           in_flight};
    std::vector<int64_t> begins(nodes,
                                0);  // of what crosses: bytes that begin behind a place, less those that end
    for (int k = 0; k < nodes; ++k) {
      if (AliasOf(*forward_[k]) == Alias::kView) continue;
      for (const Value* output : forward_[k]->outputs()) {
        if (!output) continue;
        problem.made[k] += output->type.bytes();
        if (const int last = LastPlace(*output, k); last > k) {
          begins[k] += output->type.bytes();
          begins[last] -= output->type.bytes();
        }
      }
    }
    int64_t crossing = 0;
    for (int k = 0; k + 1 < nodes; ++k) problem.crossing[k] = crossing += begins[k];
    return problem;
  }

  // The last place that uses a value, views of it included.
  int LastPlace(const Value& value, int last) const {
    for (const Use& use : value.uses()) {
      last = std::max(last, PlaceOf(*use.node));
      if (place_.contains(use.node) && AliasOf(*use.node) == Alias::kView)
        last = std::max(last, LastPlace(*use.node->output(0), last));
    }
    return last;
  }

  bool IsOf(const Value* value, int segment) const {
    const auto it = value && value->producer() ? place_.find(value->producer()) : place_.end();
    return it != place_.end() && segment_[it->second] == segment;
  }

  void RunAgain(int segment) {
    std::vector<int> wanted;  // places
    absl::flat_hash_set<int> seen;
    auto want = [&](const Node& user) {
      for (const Value* input : user.inputs()) {
        if (!IsOf(input, segment)) continue;
        if (const int place = place_.at(input->producer()); seen.insert(place).second)
          wanted.push_back(place);
      }
    };
    std::vector<Node*> users;
    for (Node* node : backward_) {
      const int place = PlaceOf(*node);
      if (place < 0 || segment_[place] != segment) continue;
      const size_t before = wanted.size();
      want(*node);
      if (wanted.size() > before || !users.empty()) users.push_back(node);
    }
    if (users.empty()) return;
    for (size_t k = 0; k < wanted.size(); ++k) want(*forward_[wanted[k]]);
    std::sort(wanted.begin(), wanted.end());
    absl::flat_hash_map<const Value*, Value*> copies;
    for (const int place : wanted) Copy(*forward_[place], users.front(), copies);
    for (Node* node : users) {
      for (int k = 0; k < static_cast<int>(node->inputs().size()); ++k) {
        if (const auto it = copies.find(node->input(k)); it != copies.end()) node->SetInput(k, it->second);
      }
    }
  }

  void Copy(Node& node, Node* before, absl::flat_hash_map<const Value*, Value*>& copies) {
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
    Node* copy = module_.graph.AddNode(std::move(spec), before);
    for (int k = 0; k < static_cast<int>(node.outputs().size()); ++k) {
      if (!node.output(k)) continue;
      copy->output(k)->batch_axis = node.output(k)->batch_axis;
      copies.emplace(node.output(k), copy->output(k));
    }
    module_.stages[node.stage].times.i += NodeSeconds(*copy, device_);
  }

  Module& module_;
  const DeviceProfile& device_;
  const std::vector<Node*>& forward_;
  const std::vector<Node*>& backward_;
  absl::flat_hash_map<const Node*, int> place_;
  std::vector<int> segment_;  // by place
};

}  // namespace

absl::StatusOr<bool> RecomputeForward(Module& module, const PassContext& context) {
  std::vector<int> stages;
  for (int s = 0; s < static_cast<int>(module.stages.size()); ++s) {
    if (module.stages[s].recompute) stages.push_back(s);
  }
  if (stages.empty()) return false;
  std::vector<std::vector<Node*>> forward(module.stages.size()), backward(module.stages.size());
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && !node->Is("Message", kPipecDomain)) forward[node->stage].push_back(node);
    if (IsBackward(*node)) backward[node->stage].push_back(node);
  }
  for (const int s : stages) {
    StageRecompute(module, context.options.cluster.device, forward[s], backward[s])
        .Run(module.stages[s].in_flight);
  }
  module.graph.NumberNodes();
  module.notes.push_back(absl::StrCat("stage", stages.size() > 1 ? "s " : " ", absl::StrJoin(stages, ", "),
                                      stages.size() > 1 ? " run" : " runs",
                                      " forward nodes again for the backward pass (--recompute)"));
  return true;
}

}  // namespace pipec
