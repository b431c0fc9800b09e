// Differentiates the loss: appends backward nodes and one accumulator for each use of a trained parameter.
//
//   y = MatMul(x, w)              dx = FusedMatMul(dy, w)     dw = FusedMatMul(x, dy)
//   ...                    ->     acc' = Accumulate(acc, dw)
//
// Level model, kept; needs the loss (build-loss). One walk over the forward nodes in reverse: when a node is
// met, the gradients of its outputs are complete. The gradient of a value is a running sum in reverse
// consumer order, each Add belonging to the consumer whose contribution it adds, so that it can travel down
// the stages (DESIGN.md, "Semantics"). Stands after the last change of the forward arithmetic and before the
// update, which needs the accumulators.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/low_rank.h"
#include "passes/gradients/differentiate.h"
#include "passes/gradients/gradient.h"
#include "passes/chosen_schedule.h"
#include "passes/loss_scale.h"
#include "passes/passes.h"
#include "runtime/base/counted.h"
#include "runtime/base/regex.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Uses of one parameter beyond this many share accumulators: memory before bit-identity.
constexpr int kMaxAccumulators = 8;

// Float parameters that the user wants to learn, in the order of the model's initializers.
absl::StatusOr<std::vector<Value*>> TrainableParameters(const Graph& graph, const CompileOptions& options) {
  ASSIGN_OR_RETURN(const std::regex train, ParseRegex(options.train_regex));
  ASSIGN_OR_RETURN(const std::regex freeze, ParseRegex(options.freeze_regex));
  std::vector<Value*> parameters;
  absl::flat_hash_set<const Value*> factors;
  for (const LowRank& row : FindLowRank(graph)) factors.insert({row.a, row.b});
  int floats = 0, frozen = 0;
  std::string some;
  for (Value* value : graph.Values()) {
    if (value->kind() != ValueKind::kParameter || !IsFloat(value->type.dtype)) continue;
    ++floats;
    some = value->name();
    const bool is_frozen = !options.freeze_regex.empty() && std::regex_search(value->name(), freeze);
    frozen += is_frozen;
    // Beside factors of low rank nothing learns, unless it is asked for.
    if (!factors.empty() && !factors.contains(value) && options.train_regex.empty()) continue;
    if (!options.train_regex.empty() && !factors.contains(value) && !std::regex_search(value->name(), train))
      continue;
    if (is_frozen) continue;
    parameters.push_back(value);
  }
  if (parameters.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no parameter to train: the model has ",
                                                   Counted(floats, "float parameter", "float parameters"),
                                                   ", --train and --freeze leave none of them"));
  }
  if (!options.freeze_regex.empty() && frozen == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--freeze=", options.freeze_regex, " finds none of the ",
                                                   Counted(floats, "float parameter", "float parameters"),
                                                   ", such as '", some, "'"));
  }
  return parameters;
}

// Moves beside the gradients, and has none.
bool IsRunningStatistic(const Value& parameter) {
  return std::any_of(parameter.uses().begin(), parameter.uses().end(),
                     [](const Use& use) { return use.node->Is("RunningAverage", kPipecDomain); });
}

// The uses of one trained parameter by forward nodes, and the accumulators they have.
struct ParameterUses {
  std::vector<Use> uses;  // in use order
  // One per accumulator, in use order. `sum` is the gradient of this microbatch where several uses share,
  // null otherwise.
  struct Slot {
    Value* sum = nullptr;
    Node* origin = nullptr;
    Value* accumulated = nullptr;
  };
  std::vector<Slot> slots;

  bool shares() const { return uses.size() > slots.size(); }
  Slot& SlotOf(Use use) {
    const auto place = std::find(uses.begin(), uses.end(), use) - uses.begin();
    return slots[place * slots.size() / uses.size()];
  }
};

class Differentiator {
 public:
  explicit Differentiator(Module& module) : module_(module), graph_(module.graph) {}

  // `loss_scale_divisor`: of LossScale, which the gradient of the loss is then; 0: it is 1.
  // `of_mean`: the gradient is the mean's of the microbatch, not the sum's that is divided after the step.
  absl::Status Run(const std::vector<Value*>& parameters, double loss_scale_divisor, bool of_mean) {
    graph_.NumberNodes();
    const std::vector<Node*> forward = graph_.Nodes();
    for (Value* parameter : parameters) AddParameter(parameter);
    MarkNeeded(forward);
    Value* loss = module_.training.loss_sum->producer()->input(1);
    GradientBuilder builder(graph_, loss->producer());
    Value* const weight = module_.training.loss_weight;
    gradients_[loss] = loss_scale_divisor > 0 ? ScaledSeed(builder, *loss, loss_scale_divisor)
                       : of_mean && weight    ? MeanSeed(builder, *loss, weight->producer()->input(1))
                                              : builder.Scalar(loss->type.dtype, 1);
    RETURN_IF_ERROR(builder.status());
    for (auto node = forward.rbegin(); node != forward.rend(); ++node) RETURN_IF_ERROR(Differentiate(*node));
    for (Value* parameter : parameters) FinishParameter(parameter);
    EraseDead(forward.back());
    return absl::OkStatus();
  }

 private:
  static Value* ScaledSeed(GradientBuilder& builder, const Value& loss, double divisor) {
    Attributes attributes, to;
    attributes.Set("divisor", static_cast<float>(divisor));
    Value* scale = builder.Emit("LossScale", {}, std::move(attributes), kPipecDomain);
    if (loss.type.dtype == DType::kFloat32) return builder.Reshape(scale, loss.type.shape);
    to.Set("to", static_cast<int64_t>(loss.type.dtype));
    return builder.Reshape(builder.Emit("Cast", {scale}, std::move(to)), loss.type.shape);
  }

  static Value* MeanSeed(GradientBuilder& builder, const Value& loss, Value* weight) {
    return builder.Reshape(builder.Emit("Div", {builder.Scalar(weight->type.dtype, 1), weight}), loss.type.shape);
  }

  void AddParameter(Value* parameter) {
    needed_.insert(parameter);
    ParameterUses& known = parameters_[parameter];
    known.uses.assign(parameter->uses().begin(), parameter->uses().end());
    std::sort(known.uses.begin(), known.uses.end(), [](const Use& a, const Use& b) {
      return std::pair(a.node->index, a.index) < std::pair(b.node->index, b.index);
    });
    known.slots.resize(std::min<size_t>(known.uses.size(), kMaxAccumulators));
    if (known.shares()) {
      module_.notes.push_back(absl::StrCat(
          "parameter ", parameter->name(), " is used ", known.uses.size(), " times: its uses share ",
          kMaxAccumulators, " accumulators, so results are not promised to be bit-identical across cuts"));
    }
  }

  // Values that depend on a trained parameter in a differentiable way, as far as is known.
  void MarkNeeded(const std::vector<Node*>& forward) {
    for (const Node* node : forward) {
      if (NoGradientFlows(node->op(), node->domain())) continue;
      if (std::none_of(node->inputs().begin(), node->inputs().end(),
                       [&](Value* v) { return needed_.contains(v); })) {
        continue;
      }
      for (Value* output : node->outputs()) {
        if (output && IsFloat(output->type.dtype)) needed_.insert(output);
      }
    }
  }

  absl::Status Differentiate(Node* node) {
    std::vector<Value*> output_gradients;
    bool reached = false;
    for (Value* output : node->outputs()) {
      auto it = gradients_.find(output);
      output_gradients.push_back(output && it != gradients_.end() ? it->second : nullptr);
      reached |= output_gradients.back() != nullptr;
    }
    if (!reached) return absl::OkStatus();
    std::vector<bool> wanted;
    for (Value* input : node->inputs()) wanted.push_back(input && needed_.contains(input));
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return absl::OkStatus();

    GradientBuilder builder(graph_, node);
    ASSIGN_OR_RETURN(const std::vector<Value*> contributions,
                     DifferentiateNode(module_, builder, output_gradients, wanted));
    for (int i = 0; i < contributions.size(); ++i) {
      if (contributions[i]) AddContribution(builder, {node, i}, contributions[i]);
    }
    return absl::OkStatus();
  }

  void AddContribution(GradientBuilder& builder, Use use, Value* contribution) {
    Value* value = use.node->input(use.index);
    auto it = parameters_.find(value);
    if (it == parameters_.end()) {
      Value*& sum = gradients_[value];
      sum = sum ? builder.Emit("Add", {sum, contribution}) : contribution;
      return;
    }
    ParameterUses::Slot& slot = it->second.SlotOf(use);
    slot.sum = slot.sum ? builder.Emit("Add", {slot.sum, contribution}) : contribution;
    slot.origin = use.node;
    if (!it->second.shares()) Accumulate(value, slot);
  }

  void Accumulate(Value* parameter, ParameterUses::Slot& slot) {
    const std::vector<ParameterUses::Slot>& slots = parameters_[parameter].slots;
    std::string name = absl::StrCat(parameter->name(), ".grad");
    if (slots.size() > 1) absl::StrAppend(&name, ".", &slot - slots.data());
    Value* accumulator = graph_.AddValue(ValueKind::kAccumulator, name, parameter->type);
    const Node* node = graph_.AddNode({.op = "Accumulate",
                                       .domain = kPipecDomain,
                                       .name = name,
                                       .inputs = {accumulator, slot.sum},
                                       .outputs = {parameter->type},
                                       .output_names = {absl::StrCat(accumulator->name(), ".sum")},
                                       .kind = Kind::kW,
                                       .origin = slot.origin});
    slot.accumulated = node->output(0);
  }

  void FinishParameter(Value* parameter) {
    TrainedParameter trained{.parameter = parameter};
    for (ParameterUses::Slot& slot : parameters_[parameter].slots) {
      if (slot.sum && !slot.accumulated) Accumulate(parameter, slot);
      if (slot.accumulated) trained.accumulated.push_back(slot.accumulated);
    }
    if (!trained.accumulated.empty()) module_.training.parameters.push_back(std::move(trained));
  }

  // Rules may make results that nobody wants in the end: a gradient on the way to a value without parameters.
  void EraseDead(const Node* last_forward) {
    absl::flat_hash_set<const Value*> kept;
    for (const TrainedParameter& trained : module_.training.parameters) {
      kept.insert(trained.accumulated.begin(), trained.accumulated.end());
    }
    for (Node* node = graph_.last_node(); node != last_forward;) {
      Node* previous = node->previous();
      const bool used = std::any_of(node->outputs().begin(), node->outputs().end(),
                                    [&](Value* v) { return v && (!v->uses().empty() || kept.contains(v)); });
      if (!used) graph_.Erase(node);
      node = previous;
    }
  }

  Module& module_;
  Graph& graph_;
  absl::flat_hash_map<Value*, ParameterUses> parameters_;
  absl::flat_hash_set<const Value*> needed_;
  // The running sums; a null is a gradient of zero.
  absl::flat_hash_map<const Value*, Value*> gradients_;
};

}  // namespace

absl::StatusOr<bool> BuildGradients(Module& module, const PassContext& context) {
  Training& training = module.training;
  if (!training.loss_sum)
    return absl::FailedPreconditionError("pass build-gradients needs a loss: run build-loss before it");
  ASSIGN_OR_RETURN(const std::vector<Value*> parameters, TrainableParameters(module.graph, context.options));
  RETURN_IF_ERROR(Differentiator(module).Run(
      parameters, LossScaleDivisor(module, context.options), UpdatesEachMicrobatch(context.options)));

  absl::flat_hash_set<const Value*> trained;
  for (const TrainedParameter& parameter : training.parameters) trained.insert(parameter.parameter);
  std::vector<std::string> left_out;
  for (const Value* parameter : parameters) {
    if (!trained.contains(parameter) && !parameter->uses().empty() && !IsRunningStatistic(*parameter))
      left_out.push_back(parameter->name());
  }
  if (training.parameters.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no gradient reaches a parameter: of ", parameters.size(),
                     " trainable ones the loss depends on none in a differentiable way"));
  }
  if (!context.options.train_regex.empty() || !context.options.freeze_regex.empty() ||
      !context.options.lora.empty()) {
    const std::vector<Value*> values = module.graph.Values();
    const auto floats = std::count_if(values.begin(), values.end(), [](const Value* value) {
      return value->kind() == ValueKind::kParameter && IsFloat(value->type.dtype);
    });
    module.notes.push_back(absl::StrCat(training.parameters.size(), " of ",
                                        Counted(floats, "float parameter", "float parameters"),
                                        " learn (--train, --freeze, --lora)"));
  }
  if (!left_out.empty()) {
    module.notes.push_back(
        absl::StrCat("not trained, as the loss has no gradient in them: ", absl::StrJoin(left_out, ", ")));
  }
  return true;
}

}  // namespace pipec
