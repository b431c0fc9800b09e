#include "passes/storages.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

class Builder {
 public:
  Builder(const Module& module, int rank, const RankPrograms& programs)
      : module_(module), rank_(rank), programs_(programs) {}

  std::vector<Storage> Build() {
    for (const Node* node : programs_.nodes) UniteNode(*node);
    AddMessages();
    AddFlags();
    for (int p = 0; p < programs_.programs.size(); ++p) {
      if (!RepeatsIAndW(programs_.programs, p)) AddAccesses(p);
    }
    for (int p = 0; p < programs_.programs.size(); ++p) {
      if (!RepeatsIAndW(programs_.programs, p)) ReuseInPlace(p);
    }
    std::vector<Storage> storages;
    for (int id = 0; id < parents_.size(); ++id) {
      if (parents_[id] == id) storages.push_back(std::move(storages_[id]));
    }
    return storages;
  }

 private:
  int Find(const Value* value) {
    auto [it, added] = ids_.emplace(value, static_cast<int>(parents_.size()));
    if (added) {
      parents_.push_back(it->second);
      storages_.push_back({.values = {value}, .named = value, .bytes = value->type.bytes()});
    }
    int id = it->second;
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }

  void Unite(const Value* result, const Value* operand) {
    const int from = Find(result), to = Find(operand);
    if (from == to) return;
    parents_[from] = to;
    storages_[to].bytes = std::max(storages_[to].bytes, storages_[from].bytes);
    // The fewer go to the more: a long chain of results, each in place of the one before, stays cheap.
    std::vector<const Value*>& kept = storages_[to].values;
    std::vector<const Value*> moved = std::move(storages_[from].values);
    if (moved.size() > kept.size()) std::swap(moved, kept);
    kept.insert(kept.end(), moved.begin(), moved.end());
  }

  void UniteNode(const Node& node) {
    for (const Value* input : node.inputs()) {
      if (input && !(node.Is("Message", kPipecDomain))) Find(input);
    }
    for (const Value* output : node.outputs()) {
      if (output) Find(output);
    }
    const Alias alias = AliasOf(node);
    if (alias != Alias::kView && alias != Alias::kSameMemory) return;
    const int outputs = alias == Alias::kView ? 1 : static_cast<int>(node.outputs().size());
    for (int k = 0; k < outputs; ++k) {
      if (node.output(k)) Unite(node.output(k), node.input(AliasInput(node, k)));
    }
  }

  void AddMessages() {
    for (const Message& message : module_.messages) {
      const bool sends = module_.stages[message.from_stage].rank == rank_;
      const bool receives = module_.stages[message.to_stage].rank == rank_;
      for (int k = 0; k < message.node->inputs().size(); ++k) {
        if (sends && receives) Unite(message.node->output(k), message.node->input(k));
      }
    }
    for (const Message& message : module_.messages) {
      const bool sends = module_.stages[message.from_stage].rank == rank_;
      const bool receives = module_.stages[message.to_stage].rank == rank_;
      if (sends == receives) continue;
      for (const Value* value : sends ? message.node->inputs() : message.node->outputs()) {
        Storage& storage = storages_[Find(value)];
        (sends ? storage.sent : storage.received).push_back(&message);
      }
    }
  }

  void AddFlags() {
    for (const Value* value : DeliveredOutputs(module_, rank_)) storages_[Find(value)].output = true;
    for (const Node* scale : module_.training.gradient_scales) {
      if (module_.stages[scale->stage].rank != rank_) continue;
      for (const Value* value : scale->outputs()) storages_[Find(value)].output = true;
    }
    for (Storage& storage : storages_) {
      for (const Value* value : storage.values) {
        storage.input |= value->kind() == ValueKind::kInput;
        storage.keeps |= value->kind() != ValueKind::kInput && value->kind() != ValueKind::kResult;
      }
    }
  }

  void AddAccesses(int p) {
    const std::vector<Node*>& nodes = programs_.programs[p].nodes;
    for (int j = 0; j < nodes.size(); ++j) {
      auto touch = [&](const Value* value) {
        if (!value) return;
        std::vector<StorageAccess>& accesses = storages_[Find(value)].accesses;
        if (accesses.empty() || accesses.back().program != p) accesses.push_back({p, j, j});
        accesses.back().last = j;
      };
      for (const Value* value : nodes[j]->inputs()) touch(value);
      for (const Value* value : nodes[j]->outputs()) touch(value);
    }
    // An output that is a view of an input is touched by no instruction, yet read after this program.
    const Program& program = programs_.programs[p];
    if (program.kind != ActionKind::kF) return;
    for (const Value* value : DeliveredOutputs(module_, rank_)) {
      std::vector<StorageAccess>& accesses = storages_[Find(value)].accesses;
      if (accesses.empty() && value->producer() && value->producer()->stage == program.stage)
        accesses.push_back({p, 0, 0});
    }
  }

  // The result of an element-wise node lies where the operand lies that it reads last.
  void ReuseInPlace(int p) {
    const std::vector<Node*>& nodes = programs_.programs[p].nodes;
    for (int j = 0; j < nodes.size(); ++j) {
      const OpInfo* info = FindOp(nodes[j]->op(), nodes[j]->domain());
      if (!info || info->alias != Alias::kInPlace) continue;
      const Value* operand = nodes[j]->input(info->alias_input);
      const Value* result = nodes[j]->output(0);
      if (!operand || !result || operand->type.bytes() != result->type.bytes()) continue;
      const bool read_otherwise =
          std::any_of(nodes[j]->inputs().begin(), nodes[j]->inputs().end(),
                      [&](const Value* v) { return v && v != operand && Find(v) == Find(operand); });
      const Storage& old = storages_[Find(operand)];
      const Storage& fresh = storages_[Find(result)];
      if (read_otherwise || !old.local() || old.accesses[0].last != j || fresh.keeps || fresh.input ||
          fresh.accesses[0].program != p || fresh.accesses[0].first != j || old.bytes != fresh.bytes) {
        continue;
      }
      const int first = old.accesses[0].first;
      Unite(operand, result);
      storages_[Find(result)].accesses[0].first = first;
    }
  }

  const Module& module_;
  const int rank_;
  const RankPrograms& programs_;
  absl::flat_hash_map<const Value*, int> ids_;
  std::vector<int> parents_;
  std::vector<Storage> storages_;
};

}  // namespace

std::vector<const Value*> DeliveredOutputs(const Module& module, int rank) {
  std::vector<const Value*> outputs;
  if (module.mode != Mode::kInfer) return outputs;
  for (const Value* value : module.graph.outputs) {
    if (value->producer() && module.stages[value->producer()->stage].rank == rank) outputs.push_back(value);
  }
  return outputs;
}

std::vector<Storage> BuildStorages(const Module& module, int rank, const RankPrograms& programs) {
  return Builder(module, rank, programs).Build();
}

}  // namespace pipec
