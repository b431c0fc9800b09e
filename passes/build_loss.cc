// Adds the loss and its sums over the microbatches of a step, and leaves in the graph what they need.
//
//   logits                ->  loss, weight = SoftmaxCrossEntropy<reduction = "sum">(logits, labels) labels: a
//   new input (an output)               loss_sum = Accumulate(.., loss);  loss_weight = Accumulate(..,
//   weight)
//                             CountCorrect and its sums, for evaluation only (attribute eval_only)
//
//   --loss=output:a*0.5,b ->  loss = Add(Mul(a, 0.5), b), of outputs made anywhere
//
// Sums, not means, are accumulated where the weight of a microbatch is known, so that loss and gradient are
// those of the whole batch whatever M is. A scalar output of the model is taken as it is; where it is the
// mean that import spells as Div(sum, weight), sum and weight are taken instead. Else each microbatch counts
// 1, or, where the output is a sum over samples, the loss of the batch is the sum. Labels of an output whose
// batch axis is merged with another ([B*T,C]) are fed by sample, [B,T], and reshaped. Level model, kept. The
// last forward nodes: stands after every change of the forward graph and after infer-batch-axis, which tells
// a scalar from the one sample of a microbatch.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/bind_input.h"
#include "passes/loss_terms.h"
#include "passes/passes.h"
#include "passes/sample_mixing.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr absl::string_view kOutputPrefix = "output:";

struct Loss {
  std::vector<const Value*> outputs;  // of the model
  Value* sum = nullptr;               // of the microbatch; one element
  Value* weight = nullptr;            // what `sum` is to be divided by; null: counts 1
  // Class losses only: what a prediction is the argmax of, its labels, and the helper node's attributes.
  Value* scores = nullptr;
  Value* labels = nullptr;
  Attributes attributes;
  bool ignores_padding = false;  // `sum` comes as it is from a helper, which leaves padding out
};

std::string ListOutputs(const Graph& graph) {
  if (graph.outputs.empty()) return "no outputs";
  return absl::StrCat("outputs ",
                      absl::StrJoin(graph.outputs, ", ", [](std::string* out, const Value* value) {
                        absl::StrAppend(out, "'", value->name(), "' ", ToString(value->type));
                      }));
}

bool IsScalar(const Value& value) { return IsFloat(value.type.dtype) && value.type.elements() == 1; }

absl::Status CheckScalar(const Value& output) {
  if (IsScalar(output)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "output '", output.name(), "' is ", ToString(output.type), ", but a loss is a float of one element; ",
      "--loss=cross-entropy, mse or bce make one from an output, --loss=output:NAME takes another output"));
}

// A loss that the model computes itself: `total` is made of its `outputs`.
absl::StatusOr<Loss> OwnLoss(Graph& graph, std::vector<const Value*> outputs, Value* total) {
  Loss loss{.outputs = std::move(outputs), .sum = total};
  ASSIGN_OR_RETURN(const WeightedSum apart, TakeApart(graph, total));
  const Node* helper = ClassLossOf(Behind(total));
  if (apart.sum) {
    helper = apart.class_loss;
    loss.sum = apart.sum;
    loss.weight = apart.weight;
  }
  if (helper) {
    loss.scores = helper->input(0);
    loss.labels = helper->input(1);
    loss.attributes = helper->attributes;
    loss.ignores_padding = Behind(loss.sum) == helper->output(0);
  }
  return loss;
}

absl::Status Refuse(const RefusedOutput& output) {
  return absl::UnimplementedError(absl::StrCat("output '", output.name,
                                               "' would be the loss, or what it is made of, but ", output.why,
                                               "; --loss=output:NAME takes another output"));
}

// One element, as the scalar it is.
Value* AsScalar(Graph& graph, Value* x) {
  if (x->type.shape.empty()) return x;
  return graph.AddNode({.op = "Squeeze", .inputs = {x}, .outputs = {{x->type.dtype, {}}}})->output(0);
}

// The outputs that --loss names, weighted and added up in that order.
absl::StatusOr<Loss> NamedOutputs(Module& module, absl::string_view text) {
  Graph& graph = module.graph;
  ASSIGN_OR_RETURN(const std::vector<LossOutput> named, ParseLossOutputs(text));
  std::vector<const Value*> outputs;
  Value* total = nullptr;
  for (const LossOutput& wanted : named) {
    auto it = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                           [&](Value* v) { return v->name() == wanted.name; });
    if (it == graph.outputs.end()) {
      for (const RefusedOutput& refused : module.refused_outputs) {
        if (refused.name == wanted.name) return Refuse(refused);
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "--loss=", kOutputPrefix, text, " names no output of the model, which has ", ListOutputs(graph)));
    }
    RETURN_IF_ERROR(CheckScalar(**it));
    outputs.push_back(*it);
    Value* part = AsScalar(graph, *it);
    if (total && part->type != total->type) {
      return absl::InvalidArgumentError(absl::StrCat("--loss: outputs '", named[0].name, "' and '",
                                                     wanted.name, "' are ", Name(total->type.dtype), " and ",
                                                     Name(part->type.dtype), ", which do not add up"));
    }
    part = Scaled(graph, part, wanted.weight);
    total = total ? graph.AddNode({.op = "Add", .inputs = {total, part}, .outputs = {part->type}})->output(0)
                  : part;
  }
  return OwnLoss(graph, std::move(outputs), total);
}

// The value of this type that the loss compares with: the new input, seen with merged axes if need be.
absl::StatusOr<Value*> AddLabels(Module& module, const Value& output, const TensorType& type,
                                 int batch_axis) {
  Graph& graph = module.graph;
  TensorType fed = type;
  const int64_t samples = module.microbatch_size;
  const bool merged = batch_axis >= 0 && type.shape[batch_axis] != samples;
  if (merged) {
    fed.shape[batch_axis] /= samples;
    fed.shape.insert(fed.shape.begin() + batch_axis, samples);
  }
  Value* labels = graph.FindValue("labels");
  // An input of this name that fits is what was meant: some exporters declare it.
  if (labels && (labels->kind() != ValueKind::kInput || !(labels->type == fed))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss on output '", output.name(), "' needs an input 'labels' of type ", ToString(fed),
        ", but the model has another value of that name, of type ", ToString(labels->type),
        "; rename it, or compute the loss in the model and name it with --loss=output:NAME"));
  }
  if (!labels) labels = graph.AddValue(ValueKind::kInput, "labels", fed);
  labels->batch_axis = batch_axis;
  if (!merged) return labels;
  const std::vector<int64_t> dims(type.shape.begin(), type.shape.end());
  Value* shape = graph.AddConstant(
      "labels.shape", {DType::kInt64, {static_cast<int64_t>(dims.size())}},
      std::string(reinterpret_cast<const char*>(dims.data()), dims.size() * sizeof(int64_t)));
  Value* rows = graph.AddNode({.op = "Reshape", .inputs = {labels, shape}, .outputs = {type}})->output(0);
  rows->batch_axis = batch_axis;
  return rows;
}

// The table that --class-weights names; null without one.
absl::StatusOr<Value*> ClassWeights(Graph& graph, const std::string& path, DType dtype, int64_t classes) {
  if (path.empty()) return nullptr;
  const TensorType type{dtype, {classes}};
  absl::StatusOr<std::string> bytes = BoundContents(path, type);
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(), absl::StrCat("--class-weights: ", bytes.status().message()));
  }
  return graph.AddConstant("class_weights", type, *std::move(bytes));
}

// Absent operands at the end are left out.
Node* AddLossNode(Graph& graph, absl::string_view op, std::vector<Value*> operands, Attributes attributes,
                  std::vector<TensorType> types) {
  if (!operands.back()) operands.pop_back();
  return graph.AddNode({.op = std::string(op),
                        .domain = kPipecDomain,
                        .name = "loss",
                        .inputs = std::move(operands),
                        .attributes = std::move(attributes),
                        .outputs = std::move(types)});
}

Attributes SamplesOf(const Module& module, int batch_axis) {
  Attributes attributes;
  attributes.Set("batch_axis", int64_t{batch_axis});
  attributes.Set("samples", module.microbatch_size);
  return attributes;
}

absl::StatusOr<Loss> CrossEntropy(Module& module, Value* output, const CompileOptions& options) {
  const int axis = static_cast<int>(output->type.shape.size()) - 1;
  if (axis < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--loss=cross-entropy needs an axis of classes, but output '", output->name(),
                     "' is a scalar; ", "--loss=output:", output->name(), " takes it as the loss"));
  }
  TensorType type{DType::kInt64, output->type.shape};
  type.shape.pop_back();
  const int batch_axis = output->batch_axis == axis ? -1 : output->batch_axis;
  ASSIGN_OR_RETURN(Value * labels, AddLabels(module, *output, type, batch_axis));
  Loss loss{
      .outputs = {output}, .scores = output, .labels = labels, .attributes = SamplesOf(module, batch_axis)};
  ASSIGN_OR_RETURN(Value * weights, ClassWeights(module.graph, options.class_weights, output->type.dtype,
                                                 output->type.shape[axis]));
  loss.attributes.Set("axis", int64_t{axis});
  loss.attributes.Set("reduction", std::string("sum"));
  loss.attributes.Set("ignore_index", options.ignore_index);
  loss.attributes.Set("label_smoothing", static_cast<float>(options.label_smoothing));
  const DType dtype = output->type.dtype;
  const Node* node = AddLossNode(module.graph, "SoftmaxCrossEntropy", {output, labels, weights},
                                 loss.attributes, {{dtype, {}}, {dtype, {}}, {dtype, type.shape}});
  loss.sum = node->output(0);
  loss.weight = node->output(1);
  return loss;
}

// Mean squared error, or binary cross-entropy on logits: those before a Sigmoid if the model ends in one.
absl::StatusOr<Loss> ElementLoss(Module& module, absl::string_view op, Value* output, bool before_sigmoid) {
  ASSIGN_OR_RETURN(Value * labels, AddLabels(module, *output, output->type, output->batch_axis));
  const TensorType scalar{output->type.dtype, {}};
  const Value* named = output;
  if (before_sigmoid && output->producer() && output->producer()->Is("Sigmoid"))
    output = output->producer()->input(0);
  const Node* node =
      AddLossNode(module.graph, op, {output, labels}, SamplesOf(module, named->batch_axis), {scalar, scalar});
  return Loss{.outputs = {named}, .sum = node->output(0), .weight = node->output(1)};
}

// Whether the first float output (or null), or with --loss=auto the first scalar (or null), would be chosen
// if import had refused none: a model must not learn from another loss because its own cannot be computed.
absl::Status CheckNotRefused(const Module& module, bool is_auto, const Value* output, const Value* scalar) {
  const std::vector<Value*>& outputs = module.graph.outputs;
  for (const RefusedOutput& refused : module.refused_outputs) {
    const auto comes_first = [&](const Value* chosen) {
      return refused.position <= std::find(outputs.begin(), outputs.end(), chosen) - outputs.begin();
    };
    const bool chosen = is_auto && refused.is_scalar ? comes_first(scalar)
                        : is_auto && scalar          ? false
                                                     : comes_first(output);
    if (refused.is_float && chosen) return Refuse(refused);
  }
  return absl::OkStatus();
}

absl::StatusOr<Loss> ChooseLoss(Module& module, const CompileOptions& options) {
  Graph& graph = module.graph;
  const std::string& wanted = options.loss;
  if (absl::StartsWith(wanted, kOutputPrefix))
    return NamedOutputs(module, absl::string_view(wanted).substr(kOutputPrefix.size()));
  Value* output = nullptr;
  Value* scalar = nullptr;
  for (Value* value : graph.outputs) {
    if (!output && IsFloat(value->type.dtype)) output = value;
    if (!scalar && IsScalar(*value) && value->batch_axis < 0) scalar = value;
  }
  RETURN_IF_ERROR(CheckNotRefused(module, wanted == "auto", output, scalar));
  if (!output) {
    return absl::InvalidArgumentError(
        absl::StrCat("training needs a float output to make a loss of; the model has ", ListOutputs(graph)));
  }
  if (wanted == "auto" && scalar) {
    module.notes.push_back(absl::StrCat("loss: output '", scalar->name(), "' (--loss)"));
    return OwnLoss(graph, {scalar}, scalar);
  }
  const std::string kind = wanted == "auto" ? "cross-entropy" : wanted;
  module.notes.push_back(
      absl::StrCat("loss: ", kind, " of output '", output->name(), "' against input 'labels' (--loss)"));
  if (kind == "cross-entropy") return CrossEntropy(module, output, options);
  if (kind == "mse") return ElementLoss(module, "MeanSquaredError", output, false);
  if (kind == "bce") return ElementLoss(module, "BinaryCrossEntropyWithLogits", output, true);
  return absl::InvalidArgumentError(
      absl::StrCat("--loss=", wanted, " is not known; there are auto, output:NAME, cross-entropy, mse, bce"));
}

bool DependsOnParameter(const Value* value) {
  absl::flat_hash_set<const Value*> seen;
  std::vector<const Value*> stack = {value};
  while (!stack.empty()) {
    const Value* next = stack.back();
    stack.pop_back();
    if (!next || !seen.insert(next).second) continue;
    if (next->kind() == ValueKind::kParameter) return true;
    if (next->producer())
      stack.insert(stack.end(), next->producer()->inputs().begin(), next->producer()->inputs().end());
  }
  return false;
}

// Several losses of different weights cannot be divided each by its own after the step. Where labels may be
// ignored, and only that makes a weight depend on them, as exporters write it, none may be in fact: the weight is
// then their number, and a label that would be ignored is refused when it comes.
void ForbidIgnoredLabels(Module& module, Value* loss) {
  for (Node* node : MeansThatIgnoreLabels(loss)) {
    // One that is a class could not be told from a label that counts.
    const int64_t ignored = node->attributes.Int("ignore_index");
    if (ignored >= 0 && ignored < node->input(0)->type.shape[node->attributes.Int("axis", 1)]) continue;
    module.notes.push_back(absl::StrCat("no label of '", node->name(), "' may be ignored (", ignored,
                                        "): beside other losses the mean over several microbatches needs to "
                                        "know how many count; --microbatches=1 allows it"));
    node->attributes.Erase("ignore_index");
  }
}

// The sum of `x` (one element) over the microbatches of a step.
Value* AddSum(Graph& graph, absl::string_view name, DType dtype, Value* x, bool eval_only) {
  const TensorType type{dtype, {}};
  x = AsScalar(graph, x);
  Value* sum = graph.AddValue(ValueKind::kAccumulator, name, type);
  Node* node = graph.AddNode({.op = "Accumulate",
                              .domain = kPipecDomain,
                              .name = std::string(name),
                              .inputs = {sum, x},
                              .outputs = {type},
                              .output_names = {absl::StrCat(sum->name(), ".sum")}});
  if (eval_only) node->attributes.Set("eval_only", int64_t{1});
  return node->output(0);
}

void CountCorrect(Graph& graph, const Loss& loss, Training& training) {
  Node* node = graph.AddNode({.op = "CountCorrect",
                              .domain = kPipecDomain,
                              .name = "count_correct",
                              .inputs = {loss.scores, loss.labels},
                              .outputs = {{DType::kInt64, {}}, {DType::kInt64, {}}}});
  node->attributes.Set("axis", loss.attributes.Int("axis", 1));
  for (const char* name : {"ignore_index", "batch_axis", "samples"}) {
    if (loss.attributes.Has(name)) node->attributes.Set(name, loss.attributes.Int(name));
  }
  node->attributes.Set("eval_only", int64_t{1});
  training.correct = AddSum(graph, "correct", DType::kInt64, node->output(0), true);
  training.predictions = AddSum(graph, "predictions", DType::kInt64, node->output(1), true);
}

void SayHowMicrobatchesAddUp(Module& module, const Loss& loss, bool is_sum) {
  Training& training = module.training;
  training.loss_is_sum = is_sum;
  if (is_sum) {
    module.notes.push_back(absl::StrCat("the loss '", loss.outputs[0]->name(),
                                        "' is a sum over samples, so the batch's is the sum"));
  }
  training.loss_of_whole_microbatches = !(is_sum && loss.ignores_padding);
  if (training.loss_of_whole_microbatches) {
    training.loss_sum->producer()->attributes.Set("samples", module.microbatch_size);
  }
}

void EraseDead(Graph& graph, const Training& training) {
  const absl::flat_hash_set<const Value*> kept = {training.loss_sum, training.loss_weight, training.correct,
                                                  training.predictions};
  for (Node* node = graph.last_node(); node;) {
    Node* previous = node->previous();
    const bool used = std::any_of(node->outputs().begin(), node->outputs().end(),
                                  [&](Value* v) { return v && (!v->uses().empty() || kept.contains(v)); });
    if (!used) graph.Erase(node);
    node = previous;
  }
}

}  // namespace

absl::StatusOr<bool> BuildLoss(Module& module, const PassContext& context) {
  Graph& graph = module.graph;
  Training& training = module.training;
  ASSIGN_OR_RETURN(const Loss loss, ChooseLoss(module, context.options));
  if (context.options.microbatches > 1 && !loss.weight) ForbidIgnoredLabels(module, loss.sum);
  if (context.options.label_smoothing != 0 && loss.attributes.Float("label_smoothing") == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--label-smoothing=", context.options.label_smoothing,
                     " goes with --loss=cross-entropy only, the loss is another"));
  }
  if (!context.options.class_weights.empty() && !(loss.labels && loss.labels->name() == "labels")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--class-weights=", context.options.class_weights,
                     " goes with --loss=cross-entropy only, the loss is another"));
  }
  if (!DependsOnParameter(loss.sum)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss '", loss.sum->name(), "' depends on no parameter of the model, so nothing could learn; ",
        "--loss=output:NAME takes another of its ", ListOutputs(graph)));
  }
  training.loss_sum = AddSum(graph, "loss_sum", DType::kFloat64, loss.sum, false);
  if (loss.weight) training.loss_weight = AddSum(graph, "loss_weight", DType::kFloat64, loss.weight, false);
  if (loss.labels) CountCorrect(graph, loss, training);

  std::vector<Value*> outputs = std::move(graph.outputs);
  graph.outputs.clear();
  std::vector<std::string> dropped;
  for (const Value* output : outputs) {
    if (output->uses().empty() &&
        std::find(loss.outputs.begin(), loss.outputs.end(), output) == loss.outputs.end())
      dropped.push_back(output->name());
  }
  EraseDead(graph, training);
  const absl::StatusOr<SampleMixing> mixing = FindSampleMixing(module, loss.sum);
  if (context.options.microbatches * context.options.replicas > 1) RETURN_IF_ERROR(mixing.status());
  NoteSampleMixing(module, context.options);
  if (!loss.weight) SayHowMicrobatchesAddUp(module, loss, mixing.ok() && *mixing == SampleMixing::kSum);
  if (!dropped.empty()) {
    module.notes.push_back(absl::StrCat("not computed in training, as the loss does not need them: outputs ",
                                        absl::StrJoin(dropped, ", ")));
  }
  return true;
}

}  // namespace pipec
