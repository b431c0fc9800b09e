// Gives every rank its ordered list of actions for a training step and for an evaluation step.
//
//   before:  stages, messages           after:  rank 1:  RECV_F0 1F0 1B0 SEND_B0 ... NORM 1UPDATE
//
// The compute actions are the named schedule's; sends and receives are placed by modelled time
// (compiler/schedule), one for every pair of stages that has a message. With several replicas REDUCE_GRAD
// of a stage stands behind its last gradient. What else happens once a step comes last: REDUCE_TIED where a
// shared parameter lives, NORM, and UPDATE for every stage with update nodes; a rank's
// first stage computes its GradientScale. Without a flush between steps the list is one round, and these stand
// where PlaceRounds puts them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/cost/node_cost.h"
#include "compiler/cost/stage_links.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/schedule.h"
#include "passes/chosen_schedule.h"
#include "passes/passes.h"
#include "passes/simulate_update.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<Schedule> WithMessages(Schedule schedule, absl::Span<const StageLink> links,
                                      absl::Span<const StageTimes> times) {
  // In its own words, before messages are in between.
  RETURN_IF_ERROR(CheckSchedule(schedule, {}));
  if (links.empty()) return schedule;
  ASSIGN_OR_RETURN(schedule, AddMessages(schedule, links, times));
  RETURN_IF_ERROR(CheckSchedule(schedule, links));
  return schedule;
}

void AddUpdate(const Module& module, Schedule& schedule) {
  const OnceAStep once = OnceAStepOf(module);
  if (!once.sums.empty()) PlaceReductions(once.sums, schedule);
  for (int r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<Action>& actions = schedule.ranks[r];
    if (once.ties[r]) actions.push_back({ActionKind::kReduceTied});
    if (once.norms) actions.push_back({ActionKind::kNorm});
    for (int s : StagesOfRank(module, r)) {
      if (once.updates[s]) actions.push_back({ActionKind::kUpdate, s});
    }
  }
}

}  // namespace

absl::StatusOr<bool> OrderActions(Module& module, const PassContext& context) {
  const CompileOptions& options = context.options;
  const int stages = static_cast<int>(module.stages.size());
  ASSIGN_OR_RETURN(Schedule chosen, ChosenSchedule(module.mode, options));
  const Schedule forward = ForwardOnly(chosen.shape, chosen.rank_of_stage);
  std::vector<StageTimes> times;
  for (const Stage& stage : module.stages) times.push_back(stage.times);

  const std::vector<StageLink> links = StageLinks(module, options.cluster, module.mode == Mode::kTrain);
  if (chosen.asynchronous()) {
    ASSIGN_OR_RETURN(module.schedule, PlaceRounds(chosen, links, OnceAStepOf(module)));
    RETURN_IF_ERROR(CheckSchedule(module.schedule, links));
  } else {
    ASSIGN_OR_RETURN(module.schedule, WithMessages(std::move(chosen), links, times));
  }
  module.lr_by_delay = options.lr_by_delay;
  ASSIGN_OR_RETURN(module.simulation, Simulate(module.schedule, links, times));
  if (module.mode == Mode::kInfer) {
    module.eval_schedule = module.schedule;
    return true;
  }
  // Unit times: evaluation advances in lockstep, so that a link never holds more than two messages.
  const std::vector<StageTimes> unit(stages);
  ASSIGN_OR_RETURN(module.eval_schedule,
                   WithMessages(forward, StageLinks(module, options.cluster, false), unit));
  if (module.schedule.asynchronous()) {
    // A rank updates while others go on: it is held up as by so much more W of the step's microbatches.
    for (const Node* node : module.graph.Nodes()) {
      if (node->kind == Kind::kU)
        times[node->stage].w +=
            NodeSeconds(*node, options.cluster.devices[module.stages[node->stage].rank]) /
            module.schedule.shape.microbatches;
    }
    ASSIGN_OR_RETURN(const Simulation with_update, Simulate(module.schedule, links, times));
    module.simulation.step_seconds = with_update.step_seconds;
    return true;
  }
  AddUpdate(module, module.schedule);
  SimulateUpdate(module, options.cluster);
  return true;
}

}  // namespace pipec
