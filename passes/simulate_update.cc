#include "passes/simulate_update.h"

#include <algorithm>
#include <vector>

#include "compiler/cost/node_cost.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "passes/rank_programs.h"

namespace pipec {
namespace {

// `done`: by rank; `norms`: when all norms have come.
double FromStepToStep(const Module& module, const std::vector<int>& validate_at,
                      const std::vector<double>& done, double norms) {
  double seconds = 0;
  for (size_t r = 0; r < done.size(); ++r) {
    const std::vector<SimulatedAction>& slices = module.simulation.ranks[r];
    double begin = done[r], validated = done[r];
    for (size_t k = 0; k < slices.size(); ++k) {
      if (!IsCompute(slices[k].action.kind)) continue;
      begin = std::min(begin, slices[k].start);
      if (static_cast<int>(k) >= validate_at[r]) validated = std::min(validated, slices[k].start);
    }
    seconds = std::max({seconds, done[r] - begin, norms - validated});
  }
  return seconds;
}

// Sums over replicas are under way while the rank goes on, one after the other.
void AddReductions(Module& module, const Cluster& cluster, int rank) {
  std::vector<SimulatedAction>& slices = module.simulation.ranks[rank];
  const Link& link = cluster.replica_links.empty() ? cluster.devices[rank].link : cluster.replica_links[rank];
  double free = 0, computed = 0;
  for (size_t k = 0; k < module.schedule.ranks[rank].size() && k <= slices.size(); ++k) {
    const Action& action = module.schedule.ranks[rank][k];
    if (action.kind != ActionKind::kReduceGrad) {
      if (IsCompute(action.kind)) computed = slices[k].end;
      continue;
    }
    double bytes = 0;
    for (const Value* value : SummedOverReplicas(module, action.stage)) bytes += value->type.bytes();
    const double start = std::max(free, computed);
    free = start + SumSeconds(bytes, module.replicas, link);
    slices.insert(slices.begin() + k, {action, start, free});
  }
}

}  // namespace

void SimulateUpdate(Module& module, const Cluster& cluster) {
  const int ranks = static_cast<int>(module.schedule.ranks.size());
  double tied_message = 0, norm_message = 0;
  for (const Message& message : module.messages) {
    const int from = module.stages[message.from_stage].rank, to = module.stages[message.to_stage].rank;
    if (from == to) continue;
    int64_t bytes = 0;
    for (const Value* value : message.node->inputs()) bytes += value->type.bytes();
    const double seconds = MessageSeconds(bytes, cluster.LinkBetween(from, to));
    if (message.kind == MessageKind::kTied) tied_message = std::max(tied_message, seconds);
    if (message.kind == MessageKind::kNorm) norm_message = std::max(norm_message, seconds);
  }
  std::vector<double> now(ranks, 0);
  for (int r = 0; r < ranks; ++r) {
    std::vector<SimulatedAction>& slices = module.simulation.ranks[r];
    std::erase_if(slices, [](const SimulatedAction& slice) { return slice.action.microbatch < 0; });
    AddReductions(module, cluster, r);
    for (const SimulatedAction& slice : slices) now[r] = std::max(now[r], slice.end);
  }
  const std::vector<int> validate_at = ValidateAt(module);
  const bool late = !validate_at.empty();
  double norms = 0;  // when those of all ranks have come
  const std::vector<RankPrograms> programs = BuildPrograms(module);
  auto seconds_of = [&](int rank, ActionKind kind, int stage) {
    double seconds = 0;
    for (const Program& program : programs[rank].programs) {
      if (program.kind != kind || (kind == ActionKind::kUpdate && program.stage != stage)) continue;
      for (const Node* node : program.nodes) seconds += NodeSeconds(*node, cluster.devices[rank]);
    }
    return seconds;
  };
  for (const auto& [kind, message] :
       {std::pair(ActionKind::kReduceTied, tied_message), std::pair(ActionKind::kNorm, norm_message),
        std::pair(ActionKind::kUpdate, 0.0)}) {
    double last = 0;  // when all that wait for each other are ready
    std::vector<int> waiting;
    for (int r = 0; r < ranks; ++r) {
      for (const Action& action : module.schedule.ranks[r]) {
        if (action.kind != kind) continue;
        const double start = now[r];
        now[r] += seconds_of(r, kind, action.stage);
        module.simulation.ranks[r].push_back({action, start, now[r]});
        last = std::max(last, now[r]);
        if (kind != ActionKind::kUpdate) waiting.push_back(r);
      }
    }
    if (kind == ActionKind::kNorm) norms = last + message;
    if (kind == ActionKind::kNorm && late) continue;
    for (const int r : waiting) now[r] = module.simulation.ranks[r].back().end = last + message;
  }
  module.simulation.step_seconds =
      late ? FromStepToStep(module, validate_at, now, norms) : *std::max_element(now.begin(), now.end());
}

}  // namespace pipec
