// Level training. Refused:
// - no loss, or a sum over microbatches (loss, weight, counts) that is not a scalar of its type made by a
// forward Accumulate;
// - a forward node with an origin, or another node without a forward node as origin (messages and packs of
// norms have none);
// - a node that comes before one of an earlier phase: F, then I and W, then U;
// - a forward node that uses a result of I, W or U; I or W that use one of U; I that uses one of W;
// - a trained parameter that is no float parameter, is listed twice, or has no accumulated gradient, no
// update, or not as many
//   lists of states as updates;
// - an accumulated gradient that is not of its parameter's type, not made from an accumulator by an Accumulate of kind
//   W or a node that adds to it itself, or that belongs to two parameters or to none;
// - an update that is not of kind U, does not update its parameter, changes its type, or has another index
// than its parameter;
// - a state that is not of kind kState or not an operand of its update;
// - no GradientScale.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/sums.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

template <typename... Words>
absl::Status Broken(const Words&... words) {
  return absl::InternalError(absl::StrCat(words...));
}

bool IsBackward(Kind kind) { return kind == Kind::kI || kind == Kind::kW; }

int Phase(Kind kind) { return kind == Kind::kF ? 0 : IsBackward(kind) ? 1 : 2; }

bool AddsToSums(const Node& node) { return Accumulates(node) || node.Is("Accumulate", kPipecDomain); }

// Whether something was added to an accumulator there.
bool IsAccumulate(const Value* value, Kind kind) {
  const Node* node = value->producer();
  if (!node || node->kind != kind || !AddsToSums(*node)) return false;
  const Value* sum = node->input(Accumulates(*node) ? OwnOperands(*node) + value->output_index() : 0);
  return sum && sum->kind() == ValueKind::kAccumulator;
}

absl::Status CheckSum(const Value* sum, absl::string_view name, DType dtype) {
  if (IsAccumulate(sum, Kind::kF) && sum->type == TensorType{dtype, {}}) return absl::OkStatus();
  return Broken("the ", name, " '", sum->name(), "' is not a ", Name(dtype),
                " scalar made by a forward Accumulate");
}

absl::Status CheckSums(const Training& training) {
  if (!training.loss_sum) return Broken("there is no loss");
  RETURN_IF_ERROR(CheckSum(training.loss_sum, "loss", DType::kFloat64));
  if (training.loss_weight)
    RETURN_IF_ERROR(CheckSum(training.loss_weight, "weight of the loss", DType::kFloat64));
  if (training.correct)
    RETURN_IF_ERROR(CheckSum(training.correct, "count of correct predictions", DType::kInt64));
  if (training.predictions)
    RETURN_IF_ERROR(CheckSum(training.predictions, "count of predictions", DType::kInt64));
  return absl::OkStatus();
}

absl::Status CheckOrigin(const Node& node) {
  if (node.Is("Message", kPipecDomain) || node.Is("Pack", kPipecDomain)) return absl::OkStatus();
  if (node.kind == Kind::kF) {
    return node.origin ? Broken("forward node ", node.name(), " has an origin") : absl::OkStatus();
  }
  if (node.origin && node.origin->kind == Kind::kF) return absl::OkStatus();
  return Broken("node ", node.name(), " of kind ", std::string(1, Letter(node.kind)),
                " has no forward node as origin");
}

absl::Status CheckKinds(const Graph& graph) {
  Kind last = Kind::kF;
  for (const Node* node : graph.Nodes()) {
    RETURN_IF_ERROR(CheckOrigin(*node));
    if (Phase(node->kind) < Phase(last)) {
      return Broken("node ", node->name(), " of kind ", std::string(1, Letter(node->kind)),
                    " comes after one of kind ", std::string(1, Letter(last)));
    }
    last = node->kind;
    for (const Value* input : node->inputs()) {
      if (!input || !input->producer()) continue;
      const Kind made = input->producer()->kind;
      if (Phase(made) > Phase(node->kind) || (node->kind == Kind::kI && made == Kind::kW)) {
        return Broken("node ", node->name(), " of kind ", std::string(1, Letter(node->kind)), " uses '",
                      input->name(), "' of kind ", std::string(1, Letter(made)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUpdate(const TrainedParameter& trained, int index, int owner) {
  const Value& parameter = *trained.parameter;
  const Node& update = *trained.updates[owner];
  if (update.kind != Kind::kU || update.input(0) != &parameter || !update.output(0) ||
      update.output(0)->type != parameter.type || update.attributes.Int("parameter", -1) != index) {
    return Broken("node ", update.name(), " is not an update of parameter ", parameter.name(), " (number ",
                  index, ")");
  }
  for (const Value* state : trained.states[owner]) {
    const auto inputs = update.inputs();
    if (state->kind() != ValueKind::kState ||
        std::find(inputs.begin(), inputs.end(), state) == inputs.end()) {
      return Broken("'", state->name(), "' is not a state of node ", update.name());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const Module& module) {
  absl::flat_hash_set<const Value*> parameters, accumulated;
  const std::vector<TrainedParameter>& all = module.training.parameters;
  for (int i = 0; i < all.size(); ++i) {
    const TrainedParameter& trained = all[i];
    const Value& parameter = *trained.parameter;
    if (parameter.kind() != ValueKind::kParameter || !IsFloat(parameter.type.dtype)) {
      return Broken("'", parameter.name(), "' is trained but not a float parameter");
    }
    if (!parameters.insert(&parameter).second)
      return Broken("parameter ", parameter.name(), " is listed twice");
    if (trained.accumulated.empty())
      return Broken("trained parameter ", parameter.name(), " has no gradient");
    for (const Value* gradient : trained.accumulated) {
      if (!IsAccumulate(gradient, Kind::kW)) {
        return Broken("gradient '", gradient->name(), "' of parameter ", parameter.name(),
                      " is not accumulated");
      }
      const Node& node = *gradient->producer();
      const Value& addend = Accumulates(node) ? *gradient : *node.input(1);
      if (gradient->type != parameter.type || addend.type != parameter.type) {
        return Broken("gradient '", gradient->name(), "' is ", ToString(gradient->type), ", its parameter ",
                      parameter.name(), " is ", ToString(parameter.type));
      }
      if (!accumulated.insert(gradient).second)
        return Broken("gradient '", gradient->name(), "' is listed twice");
    }
    if (trained.updates.empty() || trained.states.size() != trained.updates.size()) {
      return Broken("parameter ", parameter.name(), " has ", trained.updates.size(), " updates and ",
                    trained.states.size(), " lists of states");
    }
    for (int k = 0; k < trained.updates.size(); ++k) RETURN_IF_ERROR(CheckUpdate(trained, i, k));
  }
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind != Kind::kW || !AddsToSums(*node)) continue;
    for (const Value* gradient : node->outputs()) {
      if (gradient && !accumulated.contains(gradient))
        return Broken("gradient '", gradient->name(), "' belongs to no trained parameter");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyTraining(const Module& module) {
  RETURN_IF_ERROR(CheckSums(module.training));
  RETURN_IF_ERROR(CheckKinds(module.graph));
  RETURN_IF_ERROR(CheckParameters(module));
  if (module.training.gradient_scales.empty()) return Broken("there is no GradientScale");
  return absl::OkStatus();
}

}  // namespace pipec
