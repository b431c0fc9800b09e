// Cuts the model into stages.
//
//   before:  x -> A -> B -> C -> loss, backward nodes, update        after:  A, B: stage 0   C, loss: stage 1
//
// A backward or update node lives with its forward node (Node::origin). The slowest stage, its messages
// counted, is as fast as possible within CompileOptions::cut_memory (compiler/partition; solve_for_cluster.h
// where devices or links differ), whatever the order of the nodes was; of such cuts, with messages that take time
// of their stages or none, and of what boundary moves make of them, the one is taken whose step is simulated to be
// the fastest (cut_step.h). `--cut` decides instead if given, in the order of the nodes. What does not fit
// otherwise is to run again for the backward pass, which the partitioner counts as time (recompute_stages.h). Nodes
// are then put in the order of their stages. No arithmetic changes here or later: numbers do not depend on the cut.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"
#include "compiler/schedule/schedule.h"
#include "passes/chosen_schedule.h"
#include "passes/compare_cuts.h"
#include "passes/cut_step.h"
#include "passes/cut_to_fit.h"
#include "passes/move_for_step.h"
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
        absl::StrCat(Counted(stages, "stage needs ", "stages need "),
                     Counted(stages - 1, "value", "different values"), " in --cut, got ", first.size() - 1,
                     "; --stages=", first.size() / (stages / options.ranks), " fits them"));
  }
  std::vector<int> stage_of(items.nodes.size(), -1);
  for (int place : first) {
    for (int k = place; k < stage_of.size(); ++k) ++stage_of[k];
  }
  return stage_of;
}

// A compile, not a search through the night: a fraction of a second for the largest models. Under a limit there are
// many cuts to be made, and each step takes longer.
PartitionEffort EffortFor(const PartitionProblem& problem) {
  const bool limited = !problem.memory_limits.empty();
  const std::set<int> ranks(problem.rank_of_stage.begin(), problem.rank_of_stage.end());
  const bool several = ranks.size() < problem.rank_of_stage.size();
  return {.ideals = 20000,
          .pairs = several ? 2'000'000 : limited ? 5'000'000 : 20'000'000,
          .search = (limited ? 300 : 3000) * static_cast<int64_t>(problem.items.size())};
}

// What is looked at to make steps faster: CutStep::steps, and nodes that a choice of what runs again looks at.
constexpr int64_t kSteps = 3'000'000;
constexpr int64_t kOfPlan = 50;
// What a cut must gain to be taken instead of a better one in the solver's respect.
constexpr double kFaster = 0.9995;
// Items times stages, up to which a memory limit is solved in more than one way.
constexpr int64_t kFew = 20'000;

absl::StatusOr<PartitionSolution> Solve(const StageItems& items, const Cluster& cluster,
                                        const PartitionEffort& effort) {
  return SolveForCluster(items, cluster,
                         [&](const PartitionProblem& wanted) { return SolvePartition(wanted, effort); });
}

// Each stage on a device of its own, which has its share of the memory.
PartitionProblem StagesAlone(PartitionProblem problem) {
  std::vector<double> speed;
  std::vector<int64_t> limits;
  for (const int rank : problem.rank_of_stage) {
    if (!problem.speed.empty()) speed.push_back(problem.speed[rank]);
    if (problem.memory_limits.empty()) continue;
    const int64_t limit = problem.memory_limits[rank];
    const int64_t stages = std::count(problem.rank_of_stage.begin(), problem.rank_of_stage.end(), rank);
    limits.push_back(limit == std::numeric_limits<int64_t>::max() ? limit : limit / stages);
  }
  problem.speed = std::move(speed);
  problem.memory_limits = std::move(limits);
  problem.rank_of_stage.clear();
  return problem;
}

// The best cuts in several respects, the first that of the solver, which is given. Ranks of several stages: where
// their loads are equal the stages need not be, and where all stages are equal the loads need not be. Messages:
// those that travel while both ends compute take nobody's time.
std::vector<PartitionSolution> Candidates(const StageItems& items, const Cluster& cluster, const Schedule& schedule,
                                          PartitionSolution solved) {
  const PartitionProblem& problem = items.problem;
  std::vector<PartitionSolution> cuts = {std::move(solved)};
  const auto add = [&](absl::StatusOr<PartitionSolution> cut) {
    if (cut.ok() && cut->stage_of != cuts[0].stage_of) cuts.push_back(*std::move(cut));
  };
  if (schedule.shape.virtual_stages > 1) {
    add(SolveForCluster(items, cluster, [](const PartitionProblem& wanted) {
      const PartitionProblem alone = StagesAlone(wanted);
      return SolvePartition(alone, EffortFor(alone));
    }));
  }
  const int64_t size = static_cast<int64_t>(problem.items.size()) * problem.stages;
  if (problem.stages == 1 || (!problem.memory_limits.empty() && size > kFew)) return cuts;
  StageItems free = items;
  for (PartitionTensor& tensor : free.problem.tensors) tensor.seconds = 0;
  std::fill(free.tensor_bytes.begin(), free.tensor_bytes.end(), 0);
  PartitionEffort effort = EffortFor(problem);
  effort.search /= 10;
  add(Solve(free, cluster, effort));
  return cuts;
}

// Of these cuts, each improved, the one of the fastest step; the first if there is none. `steps`: done so far.
std::vector<int> FastestStep(const PartitionProblem& problem, std::vector<PartitionSolution>& cuts,
                             absl::FunctionRef<double(const std::vector<int>&, double)> seconds,
                             absl::FunctionRef<int64_t()> steps) {
  std::vector<int> fastest = cuts[0].stage_of;
  double least = std::numeric_limits<double>::infinity();
  const int64_t share = (kSteps - steps()) / static_cast<int64_t>(cuts.size());
  for (PartitionSolution& cut : cuts) {
    const int64_t most = steps() + share;
    double now = seconds(cut.stage_of, std::numeric_limits<double>::infinity());
    if (&cut == &cuts[0]) least = now;
    if (now < std::numeric_limits<double>::infinity())
      now = MoveForStep(problem, now, seconds, [&] { return steps() < most; }, cut.stage_of);
    if (now < least * kFaster) least = now, fastest = cut.stage_of;
  }
  return fastest;
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

void AssignStages(Module& module, const StageItems& items, const std::vector<int>& stage_of, const CutStep& step) {
  const std::vector<StageTimes> times = step.Times(stage_of);
  for (size_t s = 0; s < times.size(); ++s) module.stages[s].times = times[s];
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
  ASSIGN_OR_RETURN(const Schedule chosen, ChosenSchedule(module.mode, options));
  const Schedule& schedule = options.cut_for ? *options.cut_for : chosen;
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
  const CutStep step(module, items, schedule, options.cluster);
  // The bound is that of doing without memory limit and without running anything again.
  const absl::StatusOr<PartitionSolution> solution = Solve(items, options.cluster, EffortFor(problem));
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
      limited = Solve(within, options.cluster, EffortFor(within.problem));
    }
    if (!limited.ok()) return Explain(limited.status(), options, virtual_stages);
    std::vector<PartitionSolution> cuts = Candidates(within, options.cluster, schedule, *std::move(limited));
    if (some && !fits) CutToFit(items, within, options.cluster, planner, cuts.front().stage_of);
    const RankLoads within_loads(within, options.cluster);
    int64_t planned = 0;
    const auto seconds = [&](const std::vector<int>& cut, double below) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const double kept = step.Of(cut, {}, below);
      if (kept == kInfinity || (!all && FitsMemory(problem, cut, limits))) return kept;
      planned += kOfPlan * module.graph.num_nodes();
      if (all) {
        return within_loads.Slowest(cut) < kInfinity ? step.Of(cut, planner.Everything(cut).seconds, below) : kInfinity;
      }
      const RecomputePlan to_fit = some ? planner.ToFit(cut, limits) : RecomputePlan{};
      return to_fit.fits ? step.Of(cut, to_fit.seconds, below) : kInfinity;
    };
    const std::vector<int> solved = cuts.front().stage_of;
    // An order that was found was found for the solver's cut.
    stage_of = options.cut_for_one_in_flight
                   ? solved
                   : FastestStep(problem, cuts, seconds, [&] { return step.steps() + planned; });
    if (std::string why = CompareStep(within_loads.Of(stage_of), within_loads.Of(solved), step.Of(stage_of),
                                      step.Of(solved));
        !why.empty())
      module.notes.push_back(std::move(why));
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
  AssignStages(module, items, stage_of, step);
  SortByStage(module.graph, stages);
  return true;
}

}  // namespace pipec
