// Orders the nodes of each stage so that what they make and use up takes fewer bytes at once.
//
//   before:  a1 = Grow(x), a2 = Grow(x), b1 = Shrink(a1), b2 = Shrink(a2), y = Add(b1, b2)
//   after:   a1 = Grow(x), b1 = Shrink(a1), a2 = Grow(x), b2 = Shrink(a2), y = Add(b1, b2)
//
// Forward and backward nodes apart, and I and W apart where the schedule runs these apart: as the programs will be.
// What stays or is sent or kept for another program is there anyway; only what lives within one program counts
// (compiler/memory/node_order.h). The order changes only where that lowers the peak, and never a number: sums are
// nodes of their own, and draws have their key. Level staged, kept. After recompute-forward, whose copies are
// ordered too; before order-actions and plan-memory, which take the nodes as they come.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/memory/node_order.h"
#include "compiler/ops/op_info.h"
#include "passes/chosen_schedule.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool IsBackward(const Node& node) { return node.kind == Kind::kI || node.kind == Kind::kW; }
bool IsMessage(const Node& node) { return node.Is("Message", kPipecDomain); }

// The nodes of one program, in an order that keeps its peak low.
class ProgramOrder {
 public:
  ProgramOrder(const std::vector<Node*>& nodes, const absl::flat_hash_set<const Value*>& delivered)
      : nodes_(nodes), delivered_(delivered) {
    for (int k = 0; k < static_cast<int>(nodes.size()); ++k) index_[nodes[k]] = k;
  }

  // Whether it changed anything.
  bool Run(std::vector<Node*>& ordered) {
    problem_.nodes = static_cast<int>(nodes_.size());
    problem_.after.resize(nodes_.size());
    for (int k = 0; k < problem_.nodes; ++k) AddNode(k);
    const std::vector<int> order = LowPeakOrder(problem_);
    ordered.clear();
    for (const int k : order) ordered.push_back(nodes_[k]);
    return !std::is_sorted(order.begin(), order.end());
  }

 private:
  int IndexOf(const Node* node) const {
    const auto it = index_.find(node);
    return it == index_.end() ? -1 : it->second;
  }

  void AddNode(int k) {
    Node& node = *nodes_[k];
    for (const Value* input : node.inputs()) {
      if (const int maker = input ? IndexOf(input->producer()) : -1; maker >= 0) Before(maker, k);
    }
    const Alias alias = AliasOf(node);
    if (alias == Alias::kView) return;
    if (alias == Alias::kSameMemory) {
      // It overwrites its operand: who reads that stays in front of it or behind it.
      for (int result = 0; result < static_cast<int>(node.outputs().size()); ++result) {
        const Value* input = node.output(result) ? node.input(AliasInput(node, result)) : nullptr;
        if (!input) continue;
        for (const Use& use : input->uses()) {
          const int user = IndexOf(use.node);
          if (user >= 0 && user < k) Before(user, k);
          if (user > k) Before(k, user);
        }
      }
    }
    for (const Value* output : node.outputs()) {
      OrderedTensor tensor{k, {}, output ? output->type.bytes() : 0};
      if (!output || alias == Alias::kSameMemory || !CollectUsers(*output, tensor.users)) continue;
      std::sort(tensor.users.begin(), tensor.users.end());
      tensor.users.erase(std::unique(tensor.users.begin(), tensor.users.end()), tensor.users.end());
      const OpInfo* info = FindOp(node.op(), node.domain());
      if (alias == Alias::kInPlace && output == node.output(0)) {
        const auto it = tensor_of_.find(node.input(info->alias_input));
        if (it != tensor_of_.end() && problem_.tensors[it->second].bytes == tensor.bytes)
          tensor.in_place_of = it->second;
      }
      tensor_of_[output] = static_cast<int>(problem_.tensors.size());
      problem_.tensors.push_back(std::move(tensor));
    }
  }

  void Before(int first, int second) {
    std::vector<int>& after = problem_.after[second];
    if (std::find(after.begin(), after.end(), first) == after.end()) after.push_back(first);
  }

  // Users of a value and of its views; false if others than these nodes see it.
  bool CollectUsers(const Value& value, std::vector<int>& users) const {
    if (delivered_.contains(&value)) return false;
    for (const Use& use : value.uses()) {
      const int user = IndexOf(use.node);
      if (user < 0) return false;
      users.push_back(user);
      if (AliasOf(*use.node) == Alias::kView && !CollectUsers(*use.node->output(0), users)) return false;
    }
    return true;
  }

  const std::vector<Node*>& nodes_;
  const absl::flat_hash_set<const Value*>& delivered_;
  absl::flat_hash_map<const Node*, int> index_;
  absl::flat_hash_map<const Value*, int> tensor_of_;
  OrderProblem problem_;
};

}  // namespace

absl::StatusOr<bool> OrderNodes(Module& module, const PassContext& context) {
  ASSIGN_OR_RETURN(const Schedule schedule, ChosenSchedule(module.mode, context.options));
  std::vector<char> splits(module.stages.size(), 0);  // whether a stage runs I and W apart
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (const Action& action : actions) splits[action.stage] |= action.kind == ActionKind::kW;
  }
  absl::flat_hash_set<const Value*> delivered(module.graph.outputs.begin(), module.graph.outputs.end());
  // Forward stages ascending, backward stages descending, each with its messages in front; the update as it is.
  const int stages = static_cast<int>(module.stages.size());
  enum Part { kMessages, kForward, kInput, kWeight };
  std::map<std::pair<int, Part>, std::vector<Node*>> programs;  // by position of the stage
  std::vector<Node*> update;
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kU) {
      update.push_back(node);
      continue;
    }
    const bool backward = IsBackward(*node);
    const Part part = IsMessage(*node)                                ? kMessages
                      : !backward                                     ? kForward
                      : node->kind == Kind::kW && splits[node->stage] ? kWeight
                                                                      : kInput;
    programs[{backward ? 2 * stages - 1 - node->stage : node->stage, part}].push_back(node);
  }
  bool changed = false;
  for (auto& [key, nodes] : programs) {
    if (key.second == kMessages) continue;
    const std::vector<Node*> numbered = std::exchange(nodes, {});
    changed |= ProgramOrder(numbered, delivered).Run(nodes);
  }
  if (!changed) return false;
  for (const auto& [key, nodes] : programs) {
    for (Node* node : nodes) module.graph.Move(node, nullptr);
  }
  for (Node* node : update) module.graph.Move(node, nullptr);
  module.graph.NumberNodes();
  return true;
}

}  // namespace pipec
