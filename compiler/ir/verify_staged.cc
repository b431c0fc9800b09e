// Level staged. Refuses:
//  - a node without stage, a stage without forward work, ranks that are not 0 .. P-1
//  - a backward node that lives elsewhere than its forward node
//  - a message node that Module::messages does not list, or the other way round; two messages of one kind
//  between the same
//    stages; a message whose ends are one stage, whose results are not its operands' types, or with an
//    operand made elsewhere than in its from_stage (kNorm: on another rank)
//  - a forward value sent to an earlier stage, a gradient sent to a later one
//  - a value used in another stage than the one that made it, or that received it
//  - a trained parameter without exactly one update on every rank that uses it; a rank without GradientScale
#include <algorithm>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckStages(const Module& module) {
  const int stages = static_cast<int>(module.stages.size());
  if (stages == 0) return absl::InternalError("no stages");
  int ranks = 0;
  for (const Stage& stage : module.stages) ranks = std::max(ranks, stage.rank + 1);
  for (int r = 0; r < ranks; ++r) {
    if (StagesOfRank(module, r).empty())
      return absl::InternalError(absl::StrCat("rank ", r, " has no stage"));
  }
  std::vector<bool> has_work(stages, false);
  for (const Node* node : module.graph.Nodes()) {
    if (node->stage < 0 || node->stage >= stages) {
      return absl::InternalError(
          absl::StrCat("node ", node->name(), " has stage ", node->stage, " of ", stages));
    }
    const bool message = node->Is("Message", kPipecDomain);
    if (node->kind == Kind::kF && !message) has_work[node->stage] = true;
    const bool backward = node->kind == Kind::kI || node->kind == Kind::kW;
    if (backward && node->origin && node->stage != node->origin->stage) {
      return absl::InternalError(absl::StrCat("backward node ", node->name(), " is in stage ", node->stage,
                                              ", its forward node ", node->origin->name(), " in stage ",
                                              node->origin->stage));
    }
  }
  const auto empty = std::find(has_work.begin(), has_work.end(), false);
  if (empty != has_work.end()) {
    return absl::InternalError(absl::StrCat("stage ", empty - has_work.begin(), " is empty"));
  }
  return absl::OkStatus();
}

absl::Status CheckOperand(const Module& module, const Message& message, const Value* operand) {
  const std::string what =
      absl::StrCat("message of stage ", message.from_stage, " to stage ", message.to_stage, " with ",
                   operand ? operand->name() : "nothing", ": ");
  const Node* producer = operand ? operand->producer() : nullptr;
  if (!producer) return absl::InternalError(absl::StrCat(what, "only what a node makes can be sent"));
  const bool by_rank = message.kind == MessageKind::kNorm;
  const bool made_there = by_rank
                              ? module.stages[producer->stage].rank == module.stages[message.from_stage].rank
                              : producer->stage == message.from_stage;
  if (!made_there) return absl::InternalError(absl::StrCat(what, "it is made in stage ", producer->stage));
  const bool forward = producer->kind == Kind::kF;
  if (message.kind == MessageKind::kActivation && (!forward || message.from_stage > message.to_stage)) {
    return absl::InternalError(
        absl::StrCat(what, forward ? "a forward value goes to a later stage" : "not a forward value"));
  }
  if (message.kind == MessageKind::kGradient && (forward || message.from_stage < message.to_stage)) {
    return absl::InternalError(
        absl::StrCat(what, forward ? "not a gradient" : "a gradient goes to an earlier stage"));
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(const Module& module) {
  absl::flat_hash_set<const Node*> listed;
  std::set<std::tuple<MessageKind, int, int>> pairs;
  const int stages = static_cast<int>(module.stages.size());
  for (const Message& message : module.messages) {
    const std::string what =
        absl::StrCat("message of stage ", message.from_stage, " to stage ", message.to_stage, ": ");
    if (!message.node || !message.node->Is("Message", kPipecDomain) || !listed.insert(message.node).second) {
      return absl::InternalError(absl::StrCat(what, "it has no node of its own"));
    }
    if (message.from_stage < 0 || message.from_stage >= stages || message.from_stage == message.to_stage ||
        message.to_stage != message.node->stage) {
      return absl::InternalError(
          absl::StrCat(what, "wrong ends, its node is in stage ", message.node->stage));
    }
    if (!pairs.insert({message.kind, message.from_stage, message.to_stage}).second) {
      return absl::InternalError(absl::StrCat(what, "there are two of one kind"));
    }
    if (message.node->inputs().empty() || message.node->inputs().size() != message.node->outputs().size()) {
      return absl::InternalError(absl::StrCat(what, "needs as many results as operands, at least one"));
    }
    for (int k = 0; k < message.node->inputs().size(); ++k) {
      const Value *operand = message.node->input(k), *result = message.node->output(k);
      RETURN_IF_ERROR(CheckOperand(module, message, operand));
      if (!result || !(result->type == operand->type)) {
        return absl::InternalError(
            absl::StrCat(what, "operand ", operand->name(), " arrives as another type"));
      }
    }
  }
  for (const Node* node : module.graph.Nodes()) {
    if (node->Is("Message", kPipecDomain)) {
      if (!listed.contains(node))
        return absl::InternalError(absl::StrCat("message node ", node->name(), " is not listed"));
      continue;
    }
    for (const Value* input : node->inputs()) {
      if (input && input->producer() && input->producer()->stage != node->stage) {
        return absl::InternalError(absl::StrCat("node ", node->name(), " of stage ", node->stage, " uses ",
                                                input->name(), " of stage ", input->producer()->stage,
                                                " without a message"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOwners(const Module& module) {
  std::set<int> ranks, scale_ranks;
  for (const Stage& stage : module.stages) ranks.insert(stage.rank);
  for (const TrainedParameter& trained : module.training.parameters) {
    std::set<int> users, updated;
    for (const Use& use : trained.parameter->uses()) {
      if (use.node->kind != Kind::kU) users.insert(module.stages[use.node->stage].rank);
    }
    for (const Node* update : trained.updates) {
      if (!updated.insert(module.stages[update->stage].rank).second) updated.insert(-1);
    }
    if (users != updated || trained.states.size() != trained.updates.size()) {
      return absl::InternalError(absl::StrCat("parameter ", trained.parameter->name(), " is used on ",
                                              users.size(), " ranks, but not updated once on each of them"));
    }
  }
  for (const Node* scale : module.training.gradient_scales)
    scale_ranks.insert(module.stages[scale->stage].rank);
  if (!module.training.has_norm) {
    if (module.training.gradient_scales.size() == 1 &&
        module.training.gradient_scales[0]->stage == module.training.loss_sum->producer()->stage)
      return absl::OkStatus();
    return absl::InternalError("without norms the loss has one GradientScale, in its stage");
  }
  if (scale_ranks != ranks || module.training.gradient_scales.size() != ranks.size()) {
    return absl::InternalError("there is not exactly one GradientScale on every rank");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStaged(const Module& module) {
  RETURN_IF_ERROR(CheckStages(module));
  RETURN_IF_ERROR(CheckMessages(module));
  return module.mode == Mode::kTrain ? CheckOwners(module) : absl::OkStatus();
}

}  // namespace pipec
