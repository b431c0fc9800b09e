#include "passes/storage_use.h"

#include <algorithm>

#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"

namespace pipec {

std::set<ActionOf> ActionsOf(const Storage& storage, const std::vector<Program>& programs) {
  std::set<ActionOf> actions;
  for (const StorageAccess& access : storage.accesses) {
    const Program& program = programs[access.program];
    actions.insert({program.kind, program.kind == ActionKind::kNorm ? -1 : program.stage, -1});
    // Some microbatches run B instead.
    if (program.kind == ActionKind::kI || program.kind == ActionKind::kW)
      actions.insert({ActionKind::kB, program.stage, -1});
  }
  const auto once_a_step = [&](const Message* m) {
    const bool tied = m->kind == MessageKind::kTied, norm = m->kind == MessageKind::kNorm;
    if (tied || norm) actions.insert({tied ? ActionKind::kReduceTied : ActionKind::kNorm, -1, -1});
    return tied || norm;
  };
  for (const Message* m : storage.received) {
    if (once_a_step(m)) continue;
    actions.insert({m->kind == MessageKind::kActivation ? ActionKind::kRecvF : ActionKind::kRecvB,
                    m->to_stage, m->from_stage});
  }
  for (const Message* m : storage.sent) {
    if (once_a_step(m)) continue;
    actions.insert({m->kind == MessageKind::kActivation ? ActionKind::kSendF : ActionKind::kSendB,
                    m->from_stage, m->to_stage});
  }
  return actions;
}

bool IsOfStep(const Storage& storage, const std::vector<Program>& programs) {
  auto once = [](const Message* message) {
    return message->kind == MessageKind::kTied || message->kind == MessageKind::kNorm;
  };
  return std::all_of(
             storage.accesses.begin(), storage.accesses.end(),
             [&](const StorageAccess& access) { return !IsCompute(programs[access.program].kind); }) &&
         std::all_of(storage.sent.begin(), storage.sent.end(), once) &&
         std::all_of(storage.received.begin(), storage.received.end(), once);
}

BufferKind KindOf(const Storage& storage, const std::vector<Program>& programs) {
  for (const Value* value : storage.values) {
    switch (value->kind()) {
      case ValueKind::kParameter:
        return BufferKind::kParameter;
      case ValueKind::kConstant:
        return BufferKind::kConstant;
      case ValueKind::kAccumulator:
        return BufferKind::kGradient;
      case ValueKind::kState:
        return BufferKind::kOptimizerState;
      case ValueKind::kInput:
        return BufferKind::kInput;
      case ValueKind::kResult:
        break;
    }
  }
  if (!storage.received.empty()) return BufferKind::kMessage;
  if (storage.local() || IsOfStep(storage, programs)) return BufferKind::kTransient;
  bool forward = false, backward = false;
  for (const StorageAccess& access : storage.accesses) {
    (programs[access.program].kind == ActionKind::kF ? forward : backward) = true;
  }
  if (storage.accesses.size() > 1 && (backward || storage.sent.empty())) return BufferKind::kActivation;
  if (!storage.sent.empty()) return BufferKind::kMessage;
  return storage.output ? BufferKind::kOutput : BufferKind::kActivation;
}

absl::flat_hash_set<const Node*> NodesOfWeights(const Graph& graph) {
  absl::flat_hash_set<const Node*> found;
  const auto written = [](const Use& use) {
    return use.node->kind == Kind::kF && AliasOf(*use.node) == Alias::kSameMemory;
  };
  const auto is_weight = [&](const Value* value) {
    if (!value || value->kind() == ValueKind::kConstant || found.contains(value->producer())) return true;
    return value->kind() == ValueKind::kParameter &&
           std::none_of(value->uses().begin(), value->uses().end(), written);
  };
  for (const Node* node : graph.Nodes()) {
    if (node->kind == Kind::kF && IsDeterministic(node->op(), node->domain()) &&
        std::all_of(node->inputs().begin(), node->inputs().end(), is_weight)) {
      found.insert(node);
    }
  }
  return found;
}

bool IsMadeOfWeights(const Storage& storage, const absl::flat_hash_set<const Node*>& of_weights) {
  return !storage.input && !storage.output && storage.sent.empty() && storage.received.empty() &&
         std::all_of(storage.values.begin(), storage.values.end(),
                     [&](const Value* value) { return of_weights.contains(value->producer()); });
}

bool Learns(const Storage& storage) {
  bool parameter = false, updated = false;
  for (const Value* value : storage.values) {
    parameter |= value->kind() == ValueKind::kParameter;
    updated |= value->producer() && value->producer()->kind == Kind::kU;
  }
  return parameter && updated;
}

bool IsState(const Storage& storage) {
  return std::any_of(storage.values.begin(), storage.values.end(),
                     [](const Value* value) { return value->kind() == ValueKind::kState; });
}

}  // namespace pipec
