// Completes the training graph: what runs once a step, after the last microbatch.
//
//   acc' (one per use)  ->  g = acc'0 + acc'1 + ...            in use order
//                           n = SquaredNorm(g)                 per parameter
//                           scale, norm, loss = GradientScale(loss_sum, loss_weight, n...)
//                           p', m', v' = Adam(p, g, m, v, scale)
//
// Level model -> training; needs the accumulators (build-gradients). An update belongs to the first forward
// node that uses the parameter, so it gets that node's stage; replicate-update gives it to every owner later.
// Where every microbatch is followed by an update, no stage waits for another: no norms, scale is 1 (gradients
// started from the mean), and GradientScale is there for the loss only.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "passes/chosen_schedule.h"
#include "passes/loss_scale.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Optimizer {
  absl::string_view name;
  absl::string_view op;
  absl::string_view flag;  // attribute that tells variants of the op apart; "" : none
  int64_t flag_value;
  std::vector<absl::string_view> states;  // suffixes of the states' names: PyTorch's keys
};

absl::StatusOr<Optimizer> FindOptimizer(absl::string_view name) {
  static const auto* const optimizers = new std::vector<Optimizer>{
      {"sgd", "Sgd", "", 0, {}},
      {"momentum", "Momentum", "nesterov", 0, {"momentum_buffer"}},
      {"nesterov", "Momentum", "nesterov", 1, {"momentum_buffer"}},
      {"adam", "Adam", "decoupled", 0, {"exp_avg", "exp_avg_sq"}},
      {"adamw", "Adam", "decoupled", 1, {"exp_avg", "exp_avg_sq"}},
      {"adagrad", "Adagrad", "", 0, {"sum"}},
  };
  for (const Optimizer& optimizer : *optimizers) {
    if (optimizer.name == name) return optimizer;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--optimizer=", name, " is not known; there are sgd, momentum, nesterov, adam, adamw, adagrad"));
}

Node* FirstConsumer(const Value& parameter) {
  Node* first = nullptr;
  for (const Use& use : parameter.uses()) {
    if (use.node->kind == Kind::kF && (!first || use.node->index < first->index)) first = use.node;
  }
  return first;
}

// The gradient over the whole step: the uses of the parameter added up.
Value* SumOfUses(Graph& graph, const TrainedParameter& trained, Node* origin) {
  Value* sum = trained.accumulated[0];
  for (int i = 1; i < trained.accumulated.size(); ++i) {
    sum = graph
              .AddNode({.op = "Add",
                        .name = absl::StrCat(trained.parameter->name(), ".sum"),
                        .inputs = {sum, trained.accumulated[i]},
                        .outputs = {sum->type},
                        .kind = Kind::kU,
                        .origin = origin})
              ->output(0);
  }
  return sum;
}

Value* One(Graph& graph) {
  const double one = 1;
  return graph.AddConstant("gradient_scale.one", {DType::kFloat64, {}},
                           std::string(reinterpret_cast<const char*>(&one), sizeof(one)));
}

}  // namespace

absl::StatusOr<bool> BuildUpdate(Module& module, const PassContext& context) {
  Graph& graph = module.graph;
  Training& training = module.training;
  if (training.parameters.empty()) {
    return absl::FailedPreconditionError("pass build-update needs gradients: run build-gradients before it");
  }
  ASSIGN_OR_RETURN(const Optimizer optimizer, FindOptimizer(context.options.optimizer));
  training.optimizer = context.options.optimizer;
  training.has_norm = !UpdatesEachMicrobatch(context.options);
  if (!training.has_norm && context.options.precision == DType::kFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--precision=fp16 checks the gradients of all stages before each update, which --schedule=",
        context.options.schedule, " makes stage by stage; --precision=bf16, or --schedule=pipedream-2bw, works"));
  }
  graph.NumberNodes();
  const TensorType scalar{DType::kFloat64, {}};

  std::vector<Value*> gradients;
  std::vector<Value*> scale_inputs = {training.loss_sum, training.loss_weight};
  std::vector<int64_t> order;
  for (const TrainedParameter& trained : training.parameters) {
    Node* origin = FirstConsumer(*trained.parameter);
    gradients.push_back(SumOfUses(graph, trained, origin));
    if (!training.has_norm) continue;
    const Node* norm = graph.AddNode({.op = "SquaredNorm",
                                      .domain = kPipecDomain,
                                      .name = absl::StrCat(trained.parameter->name(), ".squared_norm"),
                                      .inputs = {gradients.back()},
                                      .outputs = {scalar},
                                      .kind = Kind::kU,
                                      .origin = origin});
    order.push_back(static_cast<int64_t>(order.size()));
    scale_inputs.push_back(norm->output(0));
  }
  Node* scale = graph.AddNode({.op = "GradientScale",
                               .domain = kPipecDomain,
                               .name = "gradient_scale",
                               .inputs = std::move(scale_inputs),
                               .outputs = {scalar, scalar, scalar},
                               .output_names = {"gradient_scale", "gradient_norm", "loss"},
                               .kind = Kind::kU,
                               .origin = training.loss_sum->producer()});
  scale->attributes.Set("order", std::move(order));
  scale->attributes.Set("weight", training.loss_is_sum ? 1.0f
                                                       : static_cast<float>(context.options.microbatches *
                                                                            context.options.replicas));
  if (const double divisor = LossScaleDivisor(module, context.options); divisor > 0)
    scale->attributes.Set("divisor", static_cast<float>(divisor));
  training.gradient_scales = {scale};
  Value* const factor = training.has_norm ? scale->output(0) : One(graph);

  for (int i = 0; i < training.parameters.size(); ++i) {
    TrainedParameter& trained = training.parameters[i];
    const std::string& name = trained.parameter->name();
    const TensorType& type = trained.parameter->type;
    NodeSpec spec{.op = std::string(optimizer.op),
                  .domain = kPipecDomain,
                  .name = absl::StrCat(name, ".update"),
                  .inputs = {trained.parameter, gradients[i]},
                  .outputs = {type},
                  .output_names = {absl::StrCat(name, ".updated")},
                  .kind = Kind::kU,
                  .origin = FirstConsumer(*trained.parameter)};
    spec.attributes.Set("parameter", int64_t{i});
    if (!optimizer.flag.empty()) spec.attributes.Set(optimizer.flag, optimizer.flag_value);
    std::vector<Value*> states;
    for (absl::string_view suffix : optimizer.states) {
      states.push_back(graph.AddValue(ValueKind::kState, absl::StrCat(name, ".", suffix), type));
      spec.inputs.push_back(states.back());
      spec.outputs.push_back(type);
      spec.output_names.push_back(absl::StrCat(states.back()->name(), ".updated"));
    }
    spec.inputs.push_back(factor);
    trained.updates = {graph.AddNode(std::move(spec))};
    trained.states = {std::move(states)};
  }
  return true;
}

}  // namespace pipec
