#include "passes/stage_items.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

bool IsBackward(const Node& node) { return node.kind == Kind::kI || node.kind == Kind::kW; }

std::vector<int> SortedUnique(std::vector<int> items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

// The value in whose memory `value` lies.
const Value* Viewed(const Value* value) {
  while (value->producer() && AliasOf(*value->producer()) == Alias::kView)
    value = value->producer()->input(0);
  return value;
}

absl::Status NumberItems(const Module& module, const Cluster& cluster, StageItems& items) {
  items.item_of.assign(module.graph.num_nodes(), -1);
  for (Node* node : module.graph.Nodes()) {
    const double seconds = NodeSeconds(*node, cluster.device);
    if (node->kind == Kind::kF) {
      items.item_of[node->index] = static_cast<int>(items.nodes.size());
      items.nodes.push_back(node);
      items.times.push_back({seconds, 0, 0});
    } else if (IsBackward(*node)) {
      const int item = node->origin ? items.item_of[node->origin->index] : -1;
      if (item < 0) {
        return absl::InternalError(
            absl::StrCat("backward node ", node->name(), " has no forward node as origin"));
      }
      items.item_of[node->index] = item;
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

// A cast to 16 bits behind what it casts, or one from 16 bits in front of who wants it (insert-casts): a cut
// beside it sends the small side.
bool IsSmallBehind(const Node& node) {
  return node.Is("Cast") && IsSmallFloat(node.output(0)->type.dtype) && node.input(0)->producer();
}
bool IsSmallInFront(const Node& node) { return node.Is("Cast") && IsSmallFloat(node.input(0)->type.dtype); }

void Glue(const Module& module, StageItems& items) {
  const std::vector<bool> without_data = NodesWithoutData(module.graph);
  bool in_sums = false;
  for (int k = 1; k < items.nodes.size(); ++k) {
    const Node& node = *items.nodes[k];
    const Node& previous = *items.nodes[k - 1];
    in_sums |= node.Is("Accumulate", kPipecDomain) || node.Is("CountCorrect", kPipecDomain);
    items.problem.items[k].glued_to_previous =
        in_sums || without_data[previous.index] || node.Is("RunningAverage", kPipecDomain) ||
        IsSmallBehind(node) || IsSmallInFront(previous) ||
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
    std::vector<int> users;
    for (const Use& use : value->uses()) {
      if (const int item = items.item_of[use.node->index]; item >= 0) users.push_back(item);
    }
    if (users.empty()) continue;
    users = SortedUnique(std::move(users));
    int64_t bytes = value->type.bytes();
    if (auto it = state_bytes.find(value); it != state_bytes.end()) bytes += it->second;
    if (users.size() == 1) {
      items.problem.items[users[0]].parameter_bytes += bytes;
    } else {
      items.problem.shared.push_back({std::move(users), bytes});
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
    items.problem.items[items.item_of[root->producer()->index]].activation_bytes += root->type.bytes();
  }
}

// A forward value travels to later items; a gradient to earlier ones, which costs the same in the other
// direction.
void AddTensors(const Module& module, const Cluster& cluster, StageItems& items) {
  for (const Node* node : module.graph.Nodes()) {
    const int producer = items.item_of[node->index];
    if (producer < 0) continue;
    for (const Value* value : node->outputs()) {
      if (!value) continue;
      std::vector<int> later, earlier;
      for (const Use& use : value->uses()) {
        const int item = items.item_of[use.node->index];
        if (item > producer) later.push_back(item);
        if (item >= 0 && item < producer) earlier.push_back(item);
      }
      const double seconds =
          later.empty() && earlier.empty() ? 0 : MessageSeconds(value->type.bytes(), cluster.link);
      if (!later.empty()) {
        items.problem.tensors.push_back({producer, SortedUnique(std::move(later)), seconds});
      }
      for (int item : SortedUnique(std::move(earlier)))
        items.problem.tensors.push_back({item, {producer}, seconds});
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
