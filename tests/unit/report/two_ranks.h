// A module put together by hand: two ranks of one stage each, two microbatches, F 1 s, I and W 1 s each.
#pragma once

#include "compiler/ir/module.h"

namespace pipec {

inline Value* Tensor(Graph& graph, ValueKind kind, const char* name, Shape shape) {
  return graph.AddValue(kind, name, {DType::kFloat32, shape});
}

inline void FillTwoRanks(Module& module) {
  Graph& graph = module.graph;
  Value* x = Tensor(graph, ValueKind::kInput, "x", {2, 8});
  Value* w0 = Tensor(graph, ValueKind::kParameter, "w0", {8, 4});
  Value* w1 = Tensor(graph, ValueKind::kParameter, "w1", {4, 4});
  const TensorType hidden{DType::kFloat32, {2, 4}};
  Node* first = graph.AddNode({.op = "MatMul", .inputs = {x, w0}, .outputs = {hidden}, .stage = 0});
  Node* message = graph.AddNode({.op = "Message",
                                 .domain = kPipecDomain,
                                 .inputs = {first->output(0)},
                                 .outputs = {hidden},
                                 .stage = 1});
  Node* second =
      graph.AddNode({.op = "MatMul", .inputs = {message->output(0), w1}, .outputs = {hidden}, .stage = 1});
  graph.outputs = {second->output(0)};
  module.model_name = "a<b";
  module.level = Level::kPlanned;
  module.microbatch_size = 2;
  module.stages = {{0, {1, 1, 1}}, {1, {1, 1, 1}}};
  module.messages = {{message, MessageKind::kActivation, 0, 1}};
  module.partition_bound = 3;
  module.schedule.name = "1f1b";
  module.schedule.shape = {2, 1, 2};
  module.simulation.makespan = 9;
  module.simulation.step_seconds = 9.5;
  module.simulation.bubble_ratio = 1.0 / 3;
  using K = ActionKind;
  module.simulation.ranks = {{{{K::kF, 0, 0}, 0, 1},
                              {{K::kSendF, 0, 0, 1}, 1, 1.5},
                              {{K::kF, 0, 1}, 1, 2},
                              {{K::kB, 0, 0}, 4, 6},
                              {{K::kB, 0, 1}, 7, 9},
                              {{K::kNorm}, 9, 9.25},
                              {{K::kUpdate, 0}, 9.25, 9.5}},
                             {{{K::kF, 1, 0}, 1, 2},
                              {{K::kB, 1, 0}, 2, 4},
                              {{K::kF, 1, 1}, 4, 5},
                              {{K::kB, 1, 1}, 5, 7},
                              {{K::kNorm}, 7, 9.25}}};
  module.memory.resize(2);
  module.memory[0].arena_bytes = 1000;
  module.memory[1].arena_bytes = 3000;
  module.memory[1].lower_bound = 2900;
  module.training.optimizer = "adagrad";
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<Action>& list = module.schedule.ranks.emplace_back();
    for (const SimulatedAction& slice : module.simulation.ranks[rank]) list.push_back(slice.action);
  }
  module.notes = {"2 ranks (--stages)"};
}

}  // namespace pipec
