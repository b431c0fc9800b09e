// Cuts the model into stages.
//
//   before:  x -> A -> B -> C -> loss, backward nodes, update        after:  A, B: stage 0   C, loss: stage 1
//
// A backward or update node lives with its forward node (Node::origin). The slowest stage, its messages
// counted, is as fast as possible within CompileOptions::cut_memory (compiler/partition; solve_for_cluster.h
// where devices or links differ), whatever the order of the nodes was; `--cut` decides instead if given, in that order. What does not fit otherwise is to
// run again for the backward pass, which the partitioner counts as time (recompute_stages.h). Nodes are then put in the order of their stages. No
// arithmetic changes here or later: numbers do not depend on the cut.
#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"
#include "compiler/schedule/schedule.h"
#include "passes/chosen_schedule.h"
#include "passes/compare_cuts.h"
#include "passes/cut_to_fit.h"
#include "passes/passes.h"
#include "passes/rank_loads.h"
#include "passes/recompute_stages.h"
#include "passes/solve_for_cluster.h"
#include "passes/stage_items.h"
#include "runtime/base/counted.h"
#include "runtime/base/least_memory.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Puts a node that depends on parameters only (a transposed weight, say) in front of its first consumer, so
// that both can share a stage. One whose own operand has other users stays: moved past them, that operand's
// gradient could have to travel from an earlier stage to a later one.
void MoveToConsumers(Graph& graph) {
  graph.NumberNodes();
  const std::vector<bool> without_data = NodesWithoutData(graph);
  std::vector<Node*> nodes = graph.Nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node* node = *it;
    if (node->kind != Kind::kF || !without_data[node->index]) continue;
    const bool shares_operand =
        std::any_of(node->inputs().begin(), node->inputs().end(), [](const Value* input) {
          if (!input || !input->producer()) return false;
          return 1 != std::count_if(input->uses().begin(), input->uses().end(),
                                    [](const Use& use) { return use.node->kind == Kind::kF; });
        });
    if (shares_operand) continue;
    Node* first = nullptr;
    for (const Value* output : node->outputs()) {
      if (!output) continue;
      for (const Use& use : output->uses()) {
        if (use.node->kind == Kind::kF && (!first || use.node->index < first->index)) first = use.node;
      }
    }
    if (!first) continue;
    graph.Move(node, first);
    node->index =
        first->index;  // ties keep the order of the walk: the consumer of a moved node comes after it
  }
  graph.NumberNodes();
}

// The stage of each item.
absl::StatusOr<std::vector<int>> CutAt(const Module& module, const StageItems& items,
                                       const CompileOptions& options, int stages) {
  std::set<int> first = {0};
  const std::vector<bool> without_data = NodesWithoutData(module.graph);
  for (const std::string& name : options.cut) {
    const Value* value = module.graph.FindValue(name);
    const Node* producer = value ? value->producer() : nullptr;
    if (!producer || producer->kind != Kind::kF) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cut names '", name, "', which is not a value that a node of the model makes",
          value ? ""
                : " (it may have been renamed or folded away; --print=model shows the names there are)"));
    }
    int next = items.item_of[producer->index] + 1;
    // Its 16-bit form is made in its own stage.
    while (next < static_cast<int>(items.nodes.size()) && items.problem.items[next].glued_to_previous &&
           items.nodes[next]->Is("Cast")) {
      ++next;
    }
    if (next == items.nodes.size() || without_data[producer->index]) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cut=", name, " leaves a stage without work: ",
                       next == items.nodes.size() ? "nothing comes after it" : "it depends on no input"));
    }
    first.insert(next);
  }
  if (first.size() != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat(stages, " stages need ", stages - 1, " different values in --cut, got ",
                     first.size() - 1, "; --stages=", first.size() / (stages / options.ranks), " fits them"));
  }
  std::vector<int> stage_of(items.nodes.size(), -1);
  for (int place : first) {
    for (int k = place; k < stage_of.size(); ++k) ++stage_of[k];
  }
  return stage_of;
}

// A compile, not a search through the night: a fraction of a second for the largest models. Under a limit there are many
// cuts to be made, and each step takes longer.
PartitionEffort EffortFor(const PartitionProblem& problem) {
  const bool limited = !problem.memory_limits.empty();
  return {.ideals = 20000,
          .pairs = limited ? 5'000'000 : 20'000'000,
          .search = (limited ? 300 : 3000) * static_cast<int64_t>(problem.items.size())};
}

// Until the last action of a step, messages of each pair of stages taken for as long either way.
absl::StatusOr<double> Makespan(const Schedule& schedule, const StageItems& items,
                                const std::vector<int>& stage_of) {
  std::vector<StageTimes> times(schedule.shape.stages(), {0, 0, 0});
  for (size_t i = 0; i < stage_of.size(); ++i) {
    StageTimes& stage = times[stage_of[i]];
    const StageTimes& item = items.times_on[items.kind_of_rank[schedule.rank_of_stage[stage_of[i]]]][i];
    stage.f += item.f, stage.i += item.i, stage.w += item.w;
  }
  std::map<std::pair<int, int>, double> seconds;
  for (size_t t = 0; t < items.sender.size(); ++t) {
    const PartitionTensor& tensor = items.problem.tensors[t];
    const int from = stage_of[items.sender[t]];
    std::set<int> others = {stage_of[tensor.producer]};
    for (const int consumer : tensor.consumers) others.insert(stage_of[consumer]);
    others.erase(from);
    for (const int other : others) seconds[std::minmax(from, other)] += tensor.seconds / 2;
  }
  std::vector<StageLink> links;
  for (const auto& [stages, time] : seconds) {
    links.push_back({stages.first, stages.second, time});
    links.push_back({stages.second, stages.first, time});
  }
  ASSIGN_OR_RETURN(const Schedule with_messages, AddMessages(schedule, links, times));
  ASSIGN_OR_RETURN(const Simulation simulation, Simulate(with_messages, links, times));
  return simulation.makespan;
}

// Ranks of several stages: where their loads are equal the stages need not be, and where all stages are equal the loads
// need not be. What is better depends on the schedule: it is tried.
absl::StatusOr<PartitionSolution> Solve(const PartitionProblem& problem, const Schedule& schedule,
                                        const StageItems& items) {
  PartitionEffort effort = EffortFor(problem);
  absl::StatusOr<PartitionSolution> even_ranks = SolvePartition(problem, effort);
  if (schedule.shape.virtual_stages == 1 || !even_ranks.ok()) return even_ranks;
  effort.search = 0;
  ASSIGN_OR_RETURN(PartitionSolution even_stages, SolvePartition(problem, effort));
  const absl::StatusOr<double> ranks = Makespan(schedule, items, even_ranks->stage_of),
                               stages = Makespan(schedule, items, even_stages.stage_of);
  if (!ranks.ok() || !stages.ok() || *ranks <= *stages) return even_ranks;
  even_stages.lower_bound = std::max(even_stages.lower_bound, even_ranks->lower_bound);
  return even_stages;
}

// In words of the flags.
absl::Status Explain(const absl::Status& status, const CompileOptions& options, int virtual_stages) {
  const std::string what =
      absl::StrCat("cannot cut into ", Counted(options.ranks * virtual_stages, "stage", "stages"));
  const absl::Status asked(
      status.code(),
      absl::StrCat(what, " (--stages=", options.ranks,
                   virtual_stages > 1 ? absl::StrCat(" --virtual-stages=", virtual_stages) : "",
                   "): ", absl::StripPrefix(status.message(), absl::StrCat(what, ", "))));
  return SameLeastMemory(asked, status);
}

// What every action of a stage takes; B is I + W at once.
StageTimes TimesBesideNodes(const Schedule& schedule, double action_seconds) {
  const auto runs = [&schedule](ActionKind kind) {
    return absl::c_any_of(schedule.ranks, [kind](const std::vector<Action>& list) {
      return absl::c_any_of(list, [kind](const Action& action) { return action.kind == kind; });
    });
  };
  const bool backward = runs(ActionKind::kB) || runs(ActionKind::kI);
  return {action_seconds, backward ? action_seconds : 0, runs(ActionKind::kW) ? action_seconds : 0};
}

void AssignStages(Module& module, const StageItems& items, const std::vector<int>& stage_of,
                  const Schedule& schedule, const Cluster& cluster) {
  for (Stage& stage : module.stages)
    stage.times = TimesBesideNodes(schedule, ActionSeconds(cluster.devices[stage.rank]));
  for (int k = 0; k < items.nodes.size(); ++k) {
    Stage& stage = module.stages[stage_of[k]];
    const StageTimes& item = items.times_on[items.kind_of_rank[stage.rank]][k];
    stage.times.f += item.f;
    stage.times.i += item.i;
    stage.times.w += item.w;
  }
  for (Node* node : module.graph.Nodes()) {
    if (const int item = items.item_of[node->index]; item >= 0) {
      node->stage = stage_of[item];
      continue;
    }
    // Update nodes, until replicate-update gives each owner its own.
    node->stage = node->origin ? node->origin->stage : 0;
  }
}

// Forward stages ascending, backward stages descending, the update last; within a stage as before.
void SortByStage(Graph& graph, int stages) {
  auto key = [stages](const Node* node) {
    if (node->kind == Kind::kF) return node->stage;
    return node->kind == Kind::kU ? 2 * stages : 2 * stages - 1 - node->stage;
  };
  std::vector<Node*> nodes = graph.Nodes();
  std::stable_sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return key(a) < key(b); });
  for (Node* node : nodes) graph.Move(node, nullptr);
  graph.NumberNodes();
}

}  // namespace

absl::StatusOr<bool> PartitionStages(Module& module, const PassContext& context) {
  const CompileOptions& options = context.options;
  ASSIGN_OR_RETURN(const Schedule schedule, ChosenSchedule(module.mode, options));
  const int virtual_stages = schedule.shape.virtual_stages, stages = schedule.shape.stages();

  MoveToConsumers(module.graph);
  ASSIGN_OR_RETURN(StageItems items, BuildStageItems(module, options.cluster));
  PartitionProblem& problem = items.problem;
  if (items.nodes.empty())
    return absl::InvalidArgumentError("the model has no node that could run in a stage");
  problem.stages = stages;
  if (stages > items.nodes.size()) {
    return Explain(absl::OutOfRangeError(absl::StrCat("at most ", MaxStages(problem))), options,
                   virtual_stages);
  }
  problem.in_flight =
      options.cut_for_one_in_flight ? std::vector<int>(stages, 1) : InFlight(schedule, KeptFrom::kForward);
  problem.rank_of_stage = schedule.rank_of_stage;
  if (schedule.asynchronous()) {
    AddUpdates(module, options.cluster, options.microbatches, items);
    for (const int rank : schedule.rank_of_stage) problem.versions.push_back(schedule.weight_delay[rank] + 1);
  }
  const std::vector<int64_t>& limits = options.cut_memory;
  const auto solve = [&](const PartitionProblem& wanted) { return Solve(wanted, schedule, items); };
  // The bound is that of doing without memory limit and without running anything again.
  absl::StatusOr<PartitionSolution> solution = SolveForCluster(items, options.cluster, solve);
  const RecomputePlanner planner(module, items, schedule, options.cluster);
  const Recompute recompute = module.mode == Mode::kTrain ? options.recompute : Recompute::kNone;
  std::vector<int> stage_of;
  RecomputePlan plan{std::vector<std::vector<RecomputedSegment>>(stages)};
  if (!options.cut.empty()) {
    ASSIGN_OR_RETURN(stage_of, CutAt(module, items, options, stages));
    if (recompute == Recompute::kAll) plan = planner.Everything(stage_of);
    if (recompute == Recompute::kAuto && !FitsMemory(problem, stage_of, limits))
      plan = planner.ToFit(stage_of, limits);
  } else {
    absl::StatusOr<PartitionSolution> limited = solution;
    const bool all = recompute == Recompute::kAll, some = recompute == Recompute::kAuto;
    const bool fits = solution.ok() && FitsMemory(problem, solution->stage_of, limits);
    StageItems within = items;
    if (all || !fits) {
      if (all) within.problem = RecomputedEverywhere(problem, items.times, schedule);
      for (std::vector<StageTimes>& times : within.times_on) {
        for (StageTimes& item : times) item.f *= all ? 2 : 1;
      }
      if (some) within.problem = Recomputable(problem, items.times);
      within.problem.memory_limits = limits;
      limited = SolveForCluster(within, options.cluster, solve);
    }
    if (!limited.ok()) return Explain(limited.status(), options, virtual_stages);
    stage_of = limited->stage_of;
    if (some && !fits) CutToFit(items, within, options.cluster, planner, stage_of);
    if (all) plan = planner.Everything(stage_of);
    if (some && !fits) plan = planner.ToFit(stage_of, limits);
  }
  if (solution.ok() && stages > 1) {
    const RankLoads rank_loads(items, options.cluster);
    const auto loads = [&](const std::vector<int>& cut) { return rank_loads.Of(cut); };
    std::string comparison = options.cut.empty() ? CompareEqualCut(loads(EqualCut(problem)), loads(stage_of))
                                                 : CompareOwnCut(loads(stage_of), loads(solution->stage_of));
    if (!comparison.empty()) module.notes.push_back(std::move(comparison));
  }
  module.partition_bound = solution.ok() ? solution->lower_bound : 0;
  module.stages.resize(stages);
  for (int s = 0; s < stages; ++s) {
    module.stages[s].rank = problem.rank_of_stage[s];
    module.stages[s].recomputed = std::move(plan.recomputed[s]);
  }
  AssignStages(module, items, stage_of, schedule, options.cluster);
  SortByStage(module.graph, stages);
  return true;
}

}  // namespace pipec
