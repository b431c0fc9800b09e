#include "passes/rank_programs.h"

#include <set>

#include "absl/container/flat_hash_set.h"
#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

bool IsInstruction(const Node& node) {
  return AliasOf(node) != Alias::kView && !node.Is("Message", kPipecDomain);
}

// Update nodes that read a GradientScale, and these themselves: what waits for the exchange of norms.
absl::flat_hash_set<const Node*> AfterNorm(const Graph& graph) {
  absl::flat_hash_set<const Node*> after;
  for (const Node* node : graph.Nodes()) {
    if (node->kind != Kind::kU) continue;
    bool waits = node->Is("GradientScale", kPipecDomain);
    for (const Value* input : node->inputs())
      waits |= input && input->producer() && after.contains(input->producer());
    if (waits) after.insert(node);
  }
  return after;
}

}  // namespace

bool RepeatsIAndW(const std::vector<Program>& programs, int program) {
  return programs[program].kind == ActionKind::kB && program + 1 < static_cast<int>(programs.size()) &&
         programs[program + 1].kind == ActionKind::kI &&
         programs[program + 1].stage == programs[program].stage;
}

std::vector<RankPrograms> BuildPrograms(const Module& module) {
  const int stages = static_cast<int>(module.stages.size());
  const bool training = module.mode == Mode::kTrain;
  std::vector<std::vector<Node*>> f(stages), b(stages), i(stages), w(stages), update(stages);
  std::vector<std::vector<Node*>> norm(module.schedule.ranks.size());
  std::vector<RankPrograms> ranks(module.schedule.ranks.size());
  const absl::flat_hash_set<const Node*> after_norm = AfterNorm(module.graph);
  for (Node* node : module.graph.Nodes()) {
    const int s = node->stage, r = module.stages[s].rank;
    ranks[r].nodes.push_back(node);
    if (!IsInstruction(*node)) continue;
    switch (node->kind) {
      case Kind::kF:
        f[s].push_back(node);
        break;
      case Kind::kI:
        i[s].push_back(node), b[s].push_back(node);
        break;
      case Kind::kW:
        w[s].push_back(node), b[s].push_back(node);
        break;
      case Kind::kU:
        (after_norm.contains(node) || !module.training.has_norm ? update[s] : norm[r]).push_back(node);
        break;
    }
  }
  for (int r = 0; r < ranks.size(); ++r) {
    std::set<std::pair<int, ActionKind>> runs;
    for (const Action& action : module.schedule.ranks[r]) runs.insert({action.stage, action.kind});
    std::vector<Program>& programs = ranks[r].programs;
    const std::vector<int> own = StagesOfRank(module, r);
    for (int s : own) programs.push_back({s, ActionKind::kF, std::move(f[s])});
    if (!training) continue;
    for (int s : own) {
      if (runs.contains({s, ActionKind::kI})) {
        b[s] = i[s];
        b[s].insert(b[s].end(), w[s].begin(), w[s].end());
      }
      if (runs.contains({s, ActionKind::kB})) programs.push_back({s, ActionKind::kB, std::move(b[s])});
      if (runs.contains({s, ActionKind::kI})) programs.push_back({s, ActionKind::kI, std::move(i[s])});
      if (runs.contains({s, ActionKind::kW})) programs.push_back({s, ActionKind::kW, std::move(w[s])});
    }
    if (module.training.has_norm) programs.push_back({own.front(), ActionKind::kNorm, std::move(norm[r])});
    for (int s : own) {
      if (!update[s].empty()) programs.push_back({s, ActionKind::kUpdate, std::move(update[s])});
    }
  }
  return ranks;
}

}  // namespace pipec
