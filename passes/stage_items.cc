#include "passes/stage_items.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

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

double Sum(const StageTimes& times) { return times.f + times.i + times.w; }

// By kind of device, one of its kind.
std::vector<const DeviceProfile*> KindsOfDevices(const Cluster& cluster, std::vector<int>& kind_of_rank) {
  std::vector<const DeviceProfile*> kinds;
  for (const DeviceProfile& device : cluster.devices) {
    const auto it = std::find_if(kinds.begin(), kinds.end(),
                                 [&device](const DeviceProfile* kind) { return kind->name == device.name; });
    kind_of_rank.push_back(static_cast<int>(it - kinds.begin()));
    if (it == kinds.end()) kinds.push_back(&device);
  }
  return kinds;
}

absl::Status NumberItems(const Module& module, const std::vector<const DeviceProfile*>& kinds, StageItems& items) {
  items.item_of.assign(module.graph.num_nodes(), -1);
  items.times_on.resize(kinds.size());
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF) {
      items.item_of[node->index] = static_cast<int>(items.nodes.size());
      items.nodes.push_back(node);
      for (size_t k = 0; k < kinds.size(); ++k) items.times_on[k].push_back({NodeSeconds(*node, *kinds[k]), 0, 0});
    } else if (IsBackward(*node)) {
      const int item = node->origin ? items.item_of[node->origin->index] : -1;
      if (item < 0) {
        return absl::InternalError(
            absl::StrCat("backward node ", node->name(), " has no forward node as origin"));
      }
      items.item_of[node->index] = item;
      for (size_t k = 0; k < kinds.size(); ++k) {
        StageTimes& times = items.times_on[k][item];
        (node->kind == Kind::kI ? times.i : times.w) += NodeSeconds(*node, *kinds[k]);
      }
    }
  }
  items.problem.items.resize(items.nodes.size());
  return absl::OkStatus();
}

// The first rank's kind of device has speed 1.
void SetTimes(StageItems& items) {
  if (items.times_on.size() == 1) {
    items.times = items.times_on[0];
    return;
  }
  std::vector<double> seconds;  // of all items, by kind
  for (const std::vector<StageTimes>& times : items.times_on) {
    double& all = seconds.emplace_back(0);
    for (const StageTimes& item : times) all += Sum(item);
  }
  const double ranks = static_cast<double>(items.kind_of_rank.size());
  items.times.assign(items.nodes.size(), {0, 0, 0});
  for (const int kind : items.kind_of_rank) {
    const double speed = seconds[kind] > 0 ? seconds[0] / seconds[kind] : 1;
    items.problem.speed.push_back(speed);
    for (size_t k = 0; k < items.times.size(); ++k) {
      const StageTimes& times = items.times_on[kind][k];
      items.times[k].f += times.f * speed / ranks;
      items.times[k].i += times.i * speed / ranks;
      items.times[k].w += times.w * speed / ranks;
    }
  }
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
  absl::flat_hash_map<const Value*, int64_t> state_bytes;  // of parameters that learn
  for (const TrainedParameter& trained : module.training.parameters) {
    int64_t& bytes = state_bytes[trained.parameter];
    for (const auto& owner : trained.states) {
      for (const Value* state : owner) bytes += state->type.bytes();
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
    const auto learned = state_bytes.find(value);
    const bool learns = learned != state_bytes.end();
    const int64_t weight_bytes = learns ? value->type.bytes() : 0;
    const int64_t bytes = learns ? learned->second : value->type.bytes();
    if (users.size() == 1) {
      items.problem.items[users[0]].parameter_bytes += bytes;
      items.problem.items[users[0]].weight_bytes += weight_bytes;
    } else {
      items.problem.shared.push_back({std::move(users), bytes, weight_bytes});
    }
  }
}

// Bytes that are kept for the backward pass: where they are made if they are used there, otherwise where they are used
// first. What is made of parameters alone is the same for all microbatches.
void AddActivations(const Module& module, StageItems& items) {
  const std::vector<bool> without_data = NodesWithoutData(module.graph);
  absl::flat_hash_map<const Value*, int> item_of;  // of what is kept
  for (const Value* value : module.graph.Values()) {
    const Value* root = Viewed(value);
    const Node* producer = root->producer();
    const bool is_kept = root->kind() == ValueKind::kInput ||
                         (root->kind() == ValueKind::kResult && producer->kind == Kind::kF);
    for (const Use& use : value->uses()) {
      if (!is_kept || !IsBackward(*use.node)) continue;
      int& item = item_of.emplace(root, items.item_of[use.node->index]).first->second;
      item = std::min(item, items.item_of[use.node->index]);
    }
  }
  for (const auto& [root, item] : item_of) {
    PartitionItem& keeper = items.problem.items[item];
    const bool once = root->producer() && without_data[root->producer()->index];
    (once ? keeper.weight_bytes : keeper.activation_bytes) += root->type.bytes();
  }
}

// A forward value travels to later items; a gradient to earlier ones, which costs the same in the other direction:
// once to each stage, however many of its items use it.
void AddTensors(const Module& module, const std::vector<Link>& links, StageItems& items) {
  for (const Node* node : module.graph.Nodes()) {
    const int producer = items.item_of[node->index];
    if (producer < 0) continue;
    for (const Value* value : node->outputs()) {
      if (!value) continue;
      std::vector<int> holders = {producer};
      for (const Use& use : value->uses()) {
        if (const int item = items.item_of[use.node->index]; item >= 0) holders.push_back(item);
      }
      holders = SortedUnique(std::move(holders));
      if (holders.size() == 1) continue;
      const bool ordered = holders[0] == producer;
      for (const int item : holders) {
        if (ordered || item == producer) continue;
        items.problem.order.push_back({std::min(item, producer), std::max(item, producer)});
      }
      double seconds = MessageSeconds(value->type.bytes(), links[0]);
      for (const Link& link : links) seconds = std::min(seconds, MessageSeconds(value->type.bytes(), link));
      items.problem.tensors.push_back({holders[0], {holders.begin() + 1, holders.end()}, seconds, ordered});
      items.tensor_bytes.push_back(value->type.bytes());
      items.sender.push_back(producer);
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

double StageItems::SecondsOn(int kind, int item) const {
  return Sum(times_on[kind][item]) + (updates_on.empty() ? 0 : updates_on[kind][item]);
}

void AddUpdates(const Module& module, const Cluster& cluster, int microbatches, StageItems& items) {
  std::vector<int> unused;
  const std::vector<const DeviceProfile*> kinds = KindsOfDevices(cluster, unused);
  items.updates_on.assign(kinds.size(), std::vector<double>(items.nodes.size(), 0));
  for (const Node* node : module.graph.Nodes()) {
    const int item = node->kind == Kind::kU && node->origin ? items.item_of[node->origin->index] : -1;
    if (item < 0) continue;
    double mean = 0;  // on a device of speed 1, as that of the item
    for (size_t k = 0; k < kinds.size(); ++k) items.updates_on[k][item] += NodeSeconds(*node, *kinds[k]) / microbatches;
    for (size_t r = 0; r < items.kind_of_rank.size(); ++r) {
      const double speed = items.problem.speed.empty() ? 1 : items.problem.speed[r];
      mean += NodeSeconds(*node, *kinds[items.kind_of_rank[r]]) / microbatches * speed / items.kind_of_rank.size();
    }
    items.problem.items[item].seconds += mean;
  }
}

absl::StatusOr<StageItems> BuildStageItems(const Module& module, const Cluster& cluster) {
  StageItems items;
  const std::vector<const DeviceProfile*> kinds = KindsOfDevices(cluster, items.kind_of_rank);
  RETURN_IF_ERROR(NumberItems(module, kinds, items));
  SetTimes(items);
  for (size_t k = 0; k < items.times.size(); ++k) items.problem.items[k].seconds = Sum(items.times[k]);
  Glue(module, items);
  AddBytes(module, items);
  AddActivations(module, items);
  AddTensors(module, cluster.Links(), items);
  return items;
}

}  // namespace pipec
