#include "passes/schedule_problem.h"

#include <algorithm>
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

bool HasB(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const std::vector<Action>& list) {
    return std::any_of(list.begin(), list.end(), [](const Action& a) { return a.kind == ActionKind::kB; });
  });
}

}  // namespace

ScheduleProblem ScheduleProblemOf(const Module& module, const Cluster& cluster) {
  ScheduleProblem problem{module.schedule.shape, module.schedule.rank_of_stage, {}, {}, {}, {}};
  problem.links = StageLinks(module, cluster, module.mode == Mode::kTrain);
  problem.memory.resize(module.stages.size());
  for (const Stage& stage : module.stages) problem.times.push_back(stage.times);
  if (HasB(module.schedule)) {
    problem.limit.assign(module.memory.size(), std::numeric_limits<int64_t>::max());
    return problem;
  }
  for (size_t r = 0; r < module.memory.size(); ++r) {
    const RankMemory& memory = module.memory[r];
    const std::vector<std::set<ActionOf>> users = UsersOfBuffers(memory);
    for (size_t b = 0; b < memory.buffers.size(); ++b) {
      if (memory.buffers[b].slot_class >= 0)
        AddKept(users[b], memory.buffers[b].aligned_bytes(), problem.memory);
    }
  }
  const std::vector<int64_t> in_flight = MostKept(module.schedule, problem.memory);
  for (size_t r = 0; r < module.memory.size(); ++r) {
    const int64_t limit = cluster.devices[r].memory_bytes;
    // Whatever the layout: it may be a draft.
    const int64_t live = module.memory[r].lower_bound + module.memory[r].workspace_bytes;
    problem.limit.push_back(limit > 0 ? limit - (live - in_flight[r])
                                      : std::numeric_limits<int64_t>::max());
  }
  return problem;
}

}  // namespace pipec
