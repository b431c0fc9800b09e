#include "passes/schedule_problem.h"

#include <limits>
#include <set>

#include "compiler/cost/stage_links.h"

namespace pipec {
namespace {

// Which of a stage's programs touch a buffer.
struct Users {
  int stage = -1;
  std::set<ActionKind> kinds;
};

std::vector<Users> UsersOfBuffers(const RankMemory& memory) {
  std::vector<Users> users(memory.buffers.size());
  for (const Program& program : memory.programs) {
    if (!IsCompute(program.kind)) continue;
    for (const Node* node : program.nodes) {
      const auto touch = [&](const Value* value) {
        const auto it = value ? memory.locations.find(value) : memory.locations.end();
        if (it == memory.locations.end()) return;
        users[it->second.buffer].stage = program.stage;
        users[it->second.buffer].kinds.insert(program.kind);
      };
      for (const Value* value : node->inputs()) touch(value);
      for (const Value* value : node->outputs()) touch(value);
    }
  }
  return users;
}

}  // namespace

ScheduleProblem ScheduleProblemOf(const Module& module, const Cluster& cluster) {
  ScheduleProblem problem{module.schedule.shape, module.schedule.rank_of_stage, {}, {}, {}, {}};
  problem.links = StageLinks(module, cluster, module.mode == Mode::kTrain);
  problem.memory.resize(module.stages.size());
  for (const Stage& stage : module.stages) problem.times.push_back(stage.times);
  for (const RankMemory& memory : module.memory) {
    const std::vector<Users> users = UsersOfBuffers(memory);
    int64_t rest = memory.arena_bytes;
    for (size_t b = 0; b < memory.buffers.size(); ++b) {
      const Buffer& buffer = memory.buffers[b];
      const auto& [stage, kinds] = users[b];
      if (buffer.slot_class < 0 || stage < 0) continue;
      const bool i = kinds.contains(ActionKind::kI), w = kinds.contains(ActionKind::kW);
      StageMemory& kept = problem.memory[stage];
      if (kinds.contains(ActionKind::kF) && (i || w)) {
        kept.f += buffer.stride();
        (w ? kept.w : kept.i) -= buffer.stride();
      } else if (i && w) {
        kept.i += buffer.stride();
        kept.w -= buffer.stride();
      } else {
        // Of one action and a message: there are two at a time, so that one can travel.
        rest += (2 - buffer.slots) * buffer.stride();
        continue;
      }
      rest -= buffer.slots * buffer.stride();
    }
    problem.limit.push_back(cluster.memory_limit > 0 ? cluster.memory_limit - rest
                                                     : std::numeric_limits<int64_t>::max());
  }
  return problem;
}

}  // namespace pipec
