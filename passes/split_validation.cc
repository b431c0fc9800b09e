// Lets the updates of a schedule that splits I and W go ahead of the norms of other ranks (late_validation.h).
//
//   before:  rank 0: 0F0 0SEND_F0 0F1 ... NORM 0UPDATE      NORM waits for all ranks
//   after:   the same, and the step before is validated in front of 0F1, say
//
// Level scheduled. Such schedules are taken for having no bubble, and would have one between steps; others have theirs
// inside a step anyway, and parameters and optimizer state in two places cost memory: plan-memory takes this back where
// that does not fit.
#include "compiler/ir/validate_at.h"
#include "compiler/ops/op_info.h"
#include "compiler/schedule/late_validation.h"
#include "passes/passes.h"
#include "passes/simulate_update.h"

namespace pipec {
namespace {

bool SplitsBackward(const Schedule& schedule) {
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kW) return true;
    }
  }
  return false;
}

// By stage, whether no forward node writes into what is kept from one microbatch to the next, such as a sum of
// losses or running statistics.
std::vector<bool> StagesThatRepeat(const Module& module) {
  std::vector<bool> repeats(module.stages.size(), true);
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && AliasOf(*node) == Alias::kSameMemory) repeats[node->stage] = false;
  }
  return repeats;
}

}  // namespace

absl::StatusOr<bool> SplitValidation(Module& module, const PassContext& context) {
  const Schedule& schedule = module.schedule;
  if (schedule.asynchronous() || schedule.shape.ranks == 1 || !module.training.has_norm ||
      !SplitsBackward(schedule))
    return false;
  const std::vector<int> places = LatestValidation(schedule, StagesThatRepeat(module));
  if (places.empty()) return false;
  const double waiting = module.simulation.step_seconds;
  SetValidateAt(module, places);
  SimulateUpdate(module, context.options.cluster);
  if (module.simulation.step_seconds < waiting) return true;
  SetValidateAt(module, {});
  SimulateUpdate(module, context.options.cluster);
  return false;
}

}  // namespace pipec
