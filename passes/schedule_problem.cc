#include "passes/schedule_problem.h"

#include <limits>
#include <set>

#include "compiler/cost/stage_links.h"
#include "passes/memory_limit.h"

namespace pipec {
namespace {

// By buffer, the compute actions that touch it.
std::vector<std::set<ActionOf>> UsersOfBuffers(const RankMemory& memory) {
  std::vector<std::set<ActionOf>> users(memory.buffers.size());
  for (const Program& program : memory.programs) {
    if (!IsCompute(program.kind)) continue;
    for (const Node* node : program.nodes) {
      const auto touch = [&](const Value* value) {
        const auto it = value ? memory.locations.find(value) : memory.locations.end();
        if (it != memory.locations.end()) users[it->second.buffer].insert({program.kind, program.stage, -1});
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
  for (size_t r = 0; r < module.memory.size(); ++r) {
    const RankMemory& memory = module.memory[r];
    const std::vector<std::set<ActionOf>> users = UsersOfBuffers(memory);
    int64_t rest = memory.needed_bytes();
    for (size_t b = 0; b < memory.buffers.size(); ++b) {
      const Buffer& buffer = memory.buffers[b];
      if (buffer.slot_class < 0 || users[b].empty()) continue;
      AddKept(users[b], buffer.stride(), problem.memory);
      rest -= buffer.slots * buffer.stride();
      // Of one action and a message: there are two at a time, so that one can travel.
      if (users[b].size() == 1) rest += 2 * buffer.stride();
    }
    const int64_t limit = cluster.devices[r].memory_bytes;
    problem.limit.push_back(limit > 0 ? limit - rest : std::numeric_limits<int64_t>::max());
  }
  return problem;
}

}  // namespace pipec
