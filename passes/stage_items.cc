#include "passes/stage_items.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

bool IsBackward(const Node& node) { return node.kind == Kind::kI || node.kind == Kind::kW; }

// The value in whose memory `value` lies.
const Value* Viewed(const Value* value) {
  while (value->producer() && AliasOf(*value->producer()) == Alias::kView)
    value = value->producer()->input(0);
  return value;
}

absl::Status NumberItems(const Module& module, const Cluster& cluster, StageItems& items) {
  for (Node* node : module.graph.Nodes()) {
    const double seconds = NodeSeconds(*node, cluster.device);
    if (node->kind == Kind::kF) {
      items.item_of[node] = static_cast<int>(items.nodes.size());
      items.nodes.push_back(node);
      items.times.push_back({seconds, 0, 0});
    } else if (IsBackward(*node)) {
      auto it = node->origin ? items.item_of.find(node->origin) : items.item_of.end();
      if (it == items.item_of.end()) {
        return absl::InternalError(
            absl::StrCat("backward node ", node->name(), " has no forward node as origin"));
      }
      const int item = it->second;
      items.item_of[node] = item;
      StageTimes& times = items.times[item];
      (node->kind == Kind::kI ? times.i : times.w) += seconds;
    }
  }
  items.problem.items.resize(items.nodes.size());
  for (int k = 0; k < items.nodes.size(); ++k) {
    items.problem.items[k].seconds = items.times[k].f + items.times[k].i + items.times[k].w;
  }
  return absl::OkStatus();
}

void Glue(const Module& module, StageItems& items) {
  const std::vector<bool> without_data = NodesWithoutData(module.graph);
  bool in_sums = false;
  for (int k = 1; k < items.nodes.size(); ++k) {
    const Node& node = *items.nodes[k];
    const Node& previous = *items.nodes[k - 1];
    in_sums |= node.Is("Accumulate", kPipecDomain) || node.Is("CountCorrect", kPipecDomain);
    items.problem.items[k].glued_to_previous =
        in_sums || without_data[previous.index] ||
        (AliasOf(node) == Alias::kView && node.input(0)->producer() == &previous);
  }
}

// Bytes that stay, by who needs them: one item, or several that would each need a copy.
void AddBytes(const Module& module, StageItems& items) {
  absl::flat_hash_map<const Value*, int64_t> state_bytes;
  for (const TrainedParameter& trained : module.training.parameters) {
    for (const auto& owner : trained.states) {
      for (const Value* state : owner) state_bytes[trained.parameter] += state->type.bytes();
    }
  }
  for (const Value* value : module.graph.Values()) {
    if (value->kind() == ValueKind::kResult || value->kind() == ValueKind::kInput) continue;
    std::set<int> users;
    for (const Use& use : value->uses()) {
      if (auto it = items.item_of.find(use.node); it != items.item_of.end()) users.insert(it->second);
    }
    if (users.empty()) continue;
    int64_t bytes = value->type.bytes();
    if (auto it = state_bytes.find(value); it != state_bytes.end()) bytes += it->second;
    if (users.size() == 1) {
      items.problem.items[*users.begin()].parameter_bytes += bytes;
    } else {
      items.problem.shared.push_back({{users.begin(), users.end()}, bytes});
    }
  }
  absl::flat_hash_set<const Value*> kept;
  for (const Value* value : module.graph.Values()) {
    if (std::none_of(value->uses().begin(), value->uses().end(),
                     [](const Use& use) { return IsBackward(*use.node); })) {
      continue;
    }
    const Value* root = Viewed(value);
    if (root->kind() != ValueKind::kResult || root->producer()->kind != Kind::kF || !kept.insert(root).second)
      continue;
    items.problem.items[items.item_of[root->producer()]].activation_bytes += root->type.bytes();
  }
}

// A forward value travels to later items; a gradient to earlier ones, which costs the same in the other
// direction.
void AddTensors(const Module& module, const Cluster& cluster, StageItems& items) {
  for (const Node* node : module.graph.Nodes()) {
    auto producer = items.item_of.find(node);
    if (producer == items.item_of.end()) continue;
    for (const Value* value : node->outputs()) {
      if (!value) continue;
      std::set<int> later, earlier;
      for (const Use& use : value->uses()) {
        auto it = items.item_of.find(use.node);
        if (it == items.item_of.end()) continue;
        if (it->second > producer->second) later.insert(it->second);
        if (it->second < producer->second) earlier.insert(it->second);
      }
      const double seconds =
          later.empty() && earlier.empty() ? 0 : MessageSeconds(value->type.bytes(), cluster.link);
      if (!later.empty()) {
        items.problem.tensors.push_back({producer->second, {later.begin(), later.end()}, seconds});
      }
      for (int item : earlier) items.problem.tensors.push_back({item, {producer->second}, seconds});
    }
  }
}

}  // namespace

std::vector<bool> NodesWithoutData(const Graph& graph) {
  std::vector<bool> without_data(graph.num_nodes(), true);
  for (const Node* node : graph.Nodes()) {
    for (const Value* input : node->inputs()) {
      if (!input) continue;
      if (input->kind() == ValueKind::kInput ||
          (input->producer() && !without_data[input->producer()->index])) {
        without_data[node->index] = false;
      }
    }
  }
  return without_data;
}

absl::StatusOr<StageItems> BuildStageItems(const Module& module, const Cluster& cluster) {
  StageItems items;
  if (absl::Status status = NumberItems(module, cluster, items); !status.ok()) return status;
  Glue(module, items);
  AddBytes(module, items);
  AddTensors(module, cluster, items);
  return items;
}

}  // namespace pipec
