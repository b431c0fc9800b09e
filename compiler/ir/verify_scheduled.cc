// Level scheduled. Refuses:
//  - a schedule that does not place stages as the module does
//  - whatever CheckSchedule refuses, for training and for evaluation: a missing or double action,
//  microbatches of a stage out of
//    order, a message without counterpart, a cycle; the links are the module's messages per microbatch
//  - an action once a step that is missing, double or out of order: with several replicas REDUCE_GRAD for each stage
//    with gradients or the loss, behind its last gradient; REDUCE_TIED on the ranks that exchange accumulators, NORM
//    on all ranks, UPDATE for each stage with an optimizer or a GradientScale, in this order and behind
//    everything else; in a round of a schedule without flush the same, anywhere
//  - a step before that is validated behind an action that cannot run twice, or across a message (late_validation.h)
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "compiler/ir/verify.h"
#include "compiler/schedule/late_validation.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

std::vector<StageLink> Links(const Module& module, bool backward) {
  std::vector<StageLink> links;
  for (const Message& message : module.messages) {
    if (message.kind == MessageKind::kActivation || (backward && message.kind == MessageKind::kGradient)) {
      links.push_back({message.from_stage, message.to_stage, 0});
    }
  }
  return links;
}

absl::Status CheckPlacement(const Module& module, const Schedule& schedule) {
  if (schedule.rank_of_stage.size() != module.stages.size())
    return absl::InternalError("a schedule of other stages");
  for (int s = 0; s < module.stages.size(); ++s) {
    if (schedule.rank_of_stage[s] != module.stages[s].rank) {
      return absl::InternalError(absl::StrCat("stage ", s, " is on rank ", module.stages[s].rank,
                                              ", its schedule on rank ", schedule.rank_of_stage[s]));
    }
  }
  return absl::OkStatus();
}

std::vector<Action> WantedOnceAStep(const Module& module, int rank) {
  const OnceAStep once = OnceAStepOf(module);
  std::vector<Action> wanted;
  for (int s : StagesOfRank(module, rank)) {
    if (!once.sums.empty() && once.sums[s]) wanted.push_back({ActionKind::kReduceGrad, s});
  }
  if (once.ties[rank]) wanted.push_back({ActionKind::kReduceTied});
  if (once.norms) wanted.push_back({ActionKind::kNorm});
  for (int s : StagesOfRank(module, rank)) {
    if (once.updates[s]) wanted.push_back({ActionKind::kUpdate, s});
  }
  return wanted;
}

std::string Join(const std::vector<Action>& actions) {
  return absl::StrJoin(actions, " ",
                       [](std::string* out, const Action& action) { out->append(ToString(action)); });
}

}  // namespace

absl::Status VerifyScheduled(const Module& module) {
  const bool training = module.mode == Mode::kTrain;
  RETURN_IF_ERROR(CheckPlacement(module, module.schedule));
  RETURN_IF_ERROR(CheckPlacement(module, module.eval_schedule));
  RETURN_IF_ERROR(CheckSchedule(module.schedule, Links(module, training)));
  RETURN_IF_ERROR(CheckSchedule(module.eval_schedule, Links(module, false)));
  if (!training) return absl::OkStatus();
  RETURN_IF_ERROR(CheckValidation(module.schedule, ValidateAt(module)));
  for (int r = 0; r < module.schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = module.schedule.ranks[r];
    std::vector<Action> once;
    std::copy_if(actions.begin(), actions.end(), std::back_inserter(once),
                 [](const Action& action) { return action.microbatch < 0; });
    // Sums come as their stages are done; CheckSchedule has said where.
    const auto sums_end = std::find_if(once.begin(), once.end(), [](const Action& action) {
      return action.kind != ActionKind::kReduceGrad;
    });
    std::sort(once.begin(), sums_end, [](const Action& a, const Action& b) { return a.stage < b.stage; });
    if (module.schedule.asynchronous()) {
      // Where they stand among the others CheckSchedule has said.
      for (Action& action : once) action.lag = 0;
      std::sort(once.begin(), once.end(), [](const Action& a, const Action& b) { return a.kind < b.kind; });
    }
    const std::vector<Action> wanted = WantedOnceAStep(module, r);
    if (once != wanted) {
      return absl::InternalError(
          absl::StrCat("rank ", r, " ends its step with ", Join(once), ", not with ", Join(wanted)));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
