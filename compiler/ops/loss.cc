// Losses, their gradients and the count of correct predictions.
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/casts.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// A loss that is not reduced has the labels' shape; the others are sums over samples.
int ClassLossBatchAxis(const Node& node) {
  const Value* labels = node.input(1);
  const bool kept = labels && node.output(0) && node.attributes.String("reduction", "mean") == "none";
  return kept ? labels->batch_axis : -1;
}

absl::Status CheckLabels(const NodeSpec& spec, int labels, const Shape& scores, int64_t axis) {
  const TensorType& type = TypeOf(spec, labels);
  if (type.dtype != DType::kInt64 && type.dtype != DType::kInt32) {
    return BadOperands(spec, "labels must be int64 or int32");
  }
  Shape wanted = scores;
  wanted.erase(wanted.begin() + axis);
  if (type.shape != wanted)
    return BadOperands(spec, absl::StrCat("labels must have shape ", ToString(wanted)));
  return absl::OkStatus();
}

// Class weights, if there are any: [C], of the scores' element type.
absl::Status CheckWeights(const NodeSpec& spec, int weights, DType dtype, int64_t classes) {
  if (!Present(spec, weights) || TypeOf(spec, weights) == TensorType{dtype, {classes}})
    return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("class weights must be ", ToString(TensorType{dtype, {classes}})));
}

absl::StatusOr<Shape> LossShape(const NodeSpec& spec, const Shape& labels) {
  const std::string reduction = spec.attributes.String("reduction", "sum");
  if (reduction == "none") return labels;
  if (reduction == "sum") return Shape{};
  return BadOperands(spec, absl::StrCat("reduction ", reduction, " is neither sum nor none"));
}

// (scores, labels, weights?) -> (loss, weight, log_sum_exp?): both class losses.
InferredTypes InferClassLoss(const NodeSpec& spec, int outputs) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 3));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, outputs));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType& scores = TypeOf(spec, 0);
  ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(spec, 0, 1));
  RETURN_IF_ERROR(CheckLabels(spec, 1, scores.shape, axis));
  RETURN_IF_ERROR(CheckWeights(spec, 2, scores.dtype, scores.shape[axis]));
  const Shape& labels = TypeOf(spec, 1).shape;
  ASSIGN_OR_RETURN(Shape loss, LossShape(spec, labels));
  std::vector<TensorType> types{{scores.dtype, loss}, {scores.dtype, {}}, {scores.dtype, labels}};
  types.resize(spec.outputs.size());
  return types;
}

InferredTypes InferSoftmaxCrossEntropy(const NodeSpec& spec) { return InferClassLoss(spec, 3); }
InferredTypes InferNegativeLogLikelihood(const NodeSpec& spec) { return InferClassLoss(spec, 2); }

absl::Status CheckLossGradient(const NodeSpec& spec, DType dtype, const Shape& labels) {
  ASSIGN_OR_RETURN(Shape loss, LossShape(spec, labels));
  if (TypeOf(spec, 0) == TensorType{dtype, loss}) return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("dLoss must be ", ToString(TensorType{dtype, loss})));
}

// (dLoss, logits, labels, log_sum_exp, weights?) -> (dLogits)
InferredTypes InferSoftmaxCrossEntropyGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 4, 5));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 1));
  const TensorType &logits = TypeOf(spec, 1), &labels = TypeOf(spec, 2);
  ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(spec, 1, 1));
  RETURN_IF_ERROR(CheckLabels(spec, 2, logits.shape, axis));
  RETURN_IF_ERROR(CheckWeights(spec, 4, logits.dtype, logits.shape[axis]));
  RETURN_IF_ERROR(CheckLossGradient(spec, logits.dtype, labels.shape));
  if (TypeOf(spec, 3) != TensorType{logits.dtype, labels.shape}) {
    return BadOperands(spec, "log_sum_exp must have the labels' shape and the logits' element type");
  }
  return std::vector<TensorType>{logits};
}

// (dLoss, labels, weights?) -> (dLogProb), whose shape is an attribute
InferredTypes InferNegativeLogLikelihoodGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 3));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape shape(dims.begin(), dims.end());
  const int64_t rank = shape.size(), axis = NormalizeAxis(spec.attributes.Int("axis", 1), rank);
  if (axis < 0 || axis >= rank)
    return BadOperands(spec, absl::StrCat("axis is not within shape ", ToString(shape)));
  const DType dtype = TypeOf(spec, 0).dtype;
  RETURN_IF_ERROR(CheckLabels(spec, 1, shape, axis));
  RETURN_IF_ERROR(CheckWeights(spec, 2, dtype, shape[axis]));
  RETURN_IF_ERROR(CheckLossGradient(spec, dtype, TypeOf(spec, 1).shape));
  return std::vector<TensorType>{{dtype, shape}};
}

// (output, labels) -> (loss, weight)
InferredTypes InferElementLoss(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 2));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  return std::vector<TensorType>(spec.outputs.size(), {TypeOf(spec, 0).dtype, {}});
}

// (dLoss, output, labels) -> (dOutput)
InferredTypes InferElementLossGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 3, 3));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 1));
  RETURN_IF_ERROR(CheckScalar(spec, 0, TypeOf(spec, 1).dtype));
  RETURN_IF_ERROR(CheckSameType(spec, 1, 2));
  return std::vector<TensorType>{TypeOf(spec, 1)};
}

// (logits, labels) -> (correct, predictions)
InferredTypes InferCountCorrect(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 2, 2));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(spec, 0, 1));
  RETURN_IF_ERROR(CheckLabels(spec, 1, TypeOf(spec, 0).shape, axis));
  return std::vector<TensorType>(2, {DType::kInt64, {}});
}

const OpInfo kRows[] = {
    {"SoftmaxCrossEntropyLoss", "", PerInputElement<5>},
    {"NegativeLogLikelihoodLoss", "", PerInputElement<1>},
    {"SoftmaxCrossEntropy", kPipecDomain, PerInputElement<5>, ClassLossBatchAxis, Alias::kNone, 0,
     BetweenCasts<InferSoftmaxCrossEntropy>},
    {"SoftmaxCrossEntropyGrad", kPipecDomain, PerOutputElement<5>, NoBatchAxis, Alias::kNone, 0,
     BetweenCasts<InferSoftmaxCrossEntropyGrad>},
    {"NegativeLogLikelihood", kPipecDomain, PerInputElement<1>, ClassLossBatchAxis, Alias::kNone, 0,
     InferNegativeLogLikelihood},
    {"NegativeLogLikelihoodGrad", kPipecDomain, PerOutputElement<1>, NoBatchAxis, Alias::kNone, 0,
     InferNegativeLogLikelihoodGrad},
    {"MeanSquaredError", kPipecDomain, PerInputElement<3>, NoBatchAxis, Alias::kNone, 0, InferElementLoss},
    {"MeanSquaredErrorGrad", kPipecDomain, PerOutputElement<3>, NoBatchAxis, Alias::kNone, 0,
     InferElementLossGrad},
    {"BinaryCrossEntropyWithLogits", kPipecDomain, PerInputElement<8>, NoBatchAxis, Alias::kNone, 0,
     InferElementLoss},
    {"BinaryCrossEntropyWithLogitsGrad", kPipecDomain, PerOutputElement<5>, NoBatchAxis, Alias::kNone, 0,
     InferElementLossGrad},
    {"CountCorrect", kPipecDomain, PerInputElement<1>, NoBatchAxis, Alias::kNone, 0, InferCountCorrect},
};

}  // namespace

absl::Span<const OpInfo> LossOps() { return kRows; }

}  // namespace pipec
