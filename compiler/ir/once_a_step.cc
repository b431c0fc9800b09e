#include "compiler/ir/once_a_step.h"

namespace pipec {

OnceAStep OnceAStepOf(const Module& module) {
  OnceAStep once;
  once.updates.resize(module.stages.size());
  for (const Stage& stage : module.stages) {
    if (stage.rank >= static_cast<int>(once.ties.size())) once.ties.resize(stage.rank + 1);
  }
  once.norms = module.training.has_norm;
  for (const Message& message : module.messages) {
    const int from = module.stages[message.from_stage].rank, to = module.stages[message.to_stage].rank;
    if (message.kind == MessageKind::kTied && from != to) once.ties[from] = once.ties[to] = true;
  }
  for (const TrainedParameter& trained : module.training.parameters) {
    for (const Node* update : trained.updates) once.updates[update->stage] = true;
  }
  for (const Node* scale : module.training.gradient_scales) once.updates[scale->stage] = true;
  if (module.replicas == 1) return once;
  for (int s = 0; s < static_cast<int>(module.stages.size()); ++s)
    once.sums.push_back(!SummedOverReplicas(module, s).empty());
  return once;
}

std::vector<const Value*> SummedOverReplicas(const Module& module, int stage) {
  std::vector<const Value*> sums;
  const Training& training = module.training;
  const auto add = [&](const Value* value) {
    if (value && value->producer()->stage == stage) sums.push_back(value);
  };
  for (const TrainedParameter& trained : training.parameters) {
    for (const Value* accumulated : trained.accumulated) add(accumulated);
  }
  add(training.loss_sum);
  add(training.loss_weight);
  return sums;
}

bool RunsOnceAStep(const RankMemory& memory, const Node& node) {
  if (node.kind != Kind::kF) return false;
  for (const Value* output : node.outputs()) {
    if (output && !IsOnceAStep(memory, memory.buffers[memory.locations.at(output).buffer])) return false;
  }
  return !node.outputs().empty();
}

}  // namespace pipec
