// The losses and their gradients. Nothing is padding here: padding is evaluation's.
#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;

// What both class losses make of their labels.
struct Labels {
  Name valid;    // bool, labels' shape: not ignored
  Name at;       // int64, labels' shape with an axis of size 1 for the classes; 0 where ignored
  Name weights;  // labels' shape: the weight of each row, 0 where ignored
};

// `scores` has the classes along `axis`; `class_weights` is the operand, or -1.
Labels ReadLabels(Body& b, int labels, int class_weights, DType dtype, int64_t axis) {
  const Name label =
      b.type(labels).dtype == DType::kInt64 ? b.in(labels) : b.Cast(b.in(labels), DType::kInt64);
  Labels result;
  Name safe = label;
  if (b.attributes().Has("ignore_index")) {
    const Name ignored = b.Scalar(DType::kInt64, static_cast<double>(b.attributes().Int("ignore_index")));
    result.valid = b.Op("Not", {b.Op("Equal", {label, ignored})});
    safe = b.Where(result.valid, label, b.Scalar(DType::kInt64, 0));
  } else {
    result.valid = b.Op("Equal", {label, label});
  }
  result.at = b.Op("Unsqueeze", {safe, b.Ints({axis})});
  const Name weight = b.has(class_weights) ? b.Op("Gather", {b.in(class_weights), safe}) : b.Scalar(dtype, 1);
  result.weights = b.Where(result.valid, weight, b.Scalar(dtype, 0));
  return result;
}

int64_t ClassAxis(const Body& b, int64_t rank) {
  const int64_t axis = b.attributes().Int("axis", 1);
  return axis < 0 ? axis + rank : axis;
}

bool IsSum(const Body& b) { return b.attributes().String("reduction", "sum") == "sum"; }

// The sum of all elements, added up in float64.
Name Total(Body& b, Name x, DType dtype) {
  return b.Cast(b.Op("ReduceSum", {b.Cast(std::move(x), DType::kFloat64)}, {{"keepdims", int64_t{0}}}),
                dtype);
}

// [C] with the classes along `axis` of `rank`
Name AlongClasses(Body& b, Name x, int64_t axis, int64_t rank) {
  std::vector<int64_t> shape(rank, 1);
  shape[axis] = -1;
  return b.Reshape(std::move(x), shape);
}

// (logits, labels, weights?) -> (loss, weight, log_sum_exp)
void SoftmaxCrossEntropy(Body& b) {
  const DType dtype = b.type(0).dtype;
  const int64_t axis = ClassAxis(b, b.rank(0)), classes = b.shape(0)[axis];
  const double smoothing = b.attributes().Float("label_smoothing");
  const Labels labels = ReadLabels(b, 1, 2, dtype, axis);
  const Name largest = b.Op("ReduceMax", {b.in(0), b.Ints({axis})});
  const Name shifted = b.Sub(b.in(0), largest);
  const Name log_sum = b.Op("Log", {b.Sum(b.Op("Exp", {shifted}), {axis}, true)});
  const Name each = b.Sub(log_sum, shifted);  // -log softmax
  const Name own =
      b.Op("Squeeze", {b.Op("GatherElements", {each, labels.at}, {{"axis", axis}}), b.Ints({axis})});
  Name loss = b.Mul(labels.weights, b.Mul(own, b.Scalar(dtype, 1 - smoothing)));
  if (smoothing != 0) {
    const Name weighted = b.has(2) ? b.Mul(AlongClasses(b, b.in(2), axis, b.rank(0)), each) : each;
    const Name smoothed =
        b.Mul(b.Sum(weighted, {axis}, false), b.Scalar(dtype, smoothing / static_cast<double>(classes)));
    loss = b.Add(loss, b.Where(labels.valid, smoothed, b.Scalar(dtype, 0)));
  }
  b.Result(0, IsSum(b) ? Total(b, loss, dtype) : loss);
  b.Result(1, Total(b, labels.weights, dtype));
  const Name log_sum_exp = b.Op("Squeeze", {b.Add(largest, log_sum), b.Ints({axis})});
  b.Result(2, b.Where(labels.valid, log_sum_exp, b.Scalar(dtype, 0)));
}

// dLoss for every row: as it is, or the one value for all.
Name EachLoss(Body& b, int64_t axis) {
  return IsSum(b) ? b.in(0) : b.Op("Unsqueeze", {b.in(0), b.Ints({axis})});
}

// `values` (labels' shape, an axis of size 1 for the classes) at the labels' places, 0 elsewhere.
Name AtLabels(Body& b, const Labels& labels, Name values, absl::Span<const int64_t> shape, int64_t axis,
              DType dtype) {
  std::vector<int64_t> one(shape.begin(), shape.end());
  one[axis] = 1;
  return b.Op("ScatterElements",
              {b.Full(dtype, shape, 0), labels.at, b.Op("Expand", {std::move(values), b.Ints(one)})},
              {{"axis", axis}});
}

// (dLoss, logits, labels, log_sum_exp, weights?) -> (dLogits)
void SoftmaxCrossEntropyGrad(Body& b) {
  const DType dtype = b.type(1).dtype;
  const int64_t axis = ClassAxis(b, b.rank(1)), classes = b.shape(1)[axis];
  const double smoothing = b.attributes().Float("label_smoothing");
  const Labels labels = ReadLabels(b, 2, 4, dtype, axis);
  const Name probability = b.Op("Exp", {b.Sub(b.in(1), b.Op("Unsqueeze", {b.in(3), b.Ints({axis})}))});
  const Name d = EachLoss(b, axis), weights = b.Op("Unsqueeze", {labels.weights, b.Ints({axis})});
  const Name own = b.Mul(b.Mul(d, b.Scalar(dtype, 1 - smoothing)), weights);
  Name gradient = b.Mul(probability, own);
  if (smoothing != 0) {
    const Name spread = b.Scalar(dtype, smoothing / static_cast<double>(classes));
    const Name weight = b.has(4) ? AlongClasses(b, b.in(4), axis, b.rank(1)) : b.Scalar(dtype, 1);
    const Name all = b.has(4) ? b.Op("ReduceSum", {b.in(4)}, {{"keepdims", int64_t{0}}})
                              : b.Scalar(dtype, static_cast<double>(classes));
    const Name smoothed = b.Mul(b.Mul(d, spread), b.Sub(b.Mul(probability, all), weight));
    const Name valid = b.Op("Unsqueeze", {labels.valid, b.Ints({axis})});
    gradient = b.Add(gradient, b.Where(valid, smoothed, b.Scalar(dtype, 0)));
  }
  b.Result(0, b.Sub(gradient, AtLabels(b, labels, own, b.shape(1), axis, dtype)));
}

// (log_prob, labels, weights?) -> (loss, weight)
void NegativeLogLikelihood(Body& b) {
  const DType dtype = b.type(0).dtype;
  const int64_t axis = ClassAxis(b, b.rank(0));
  const Labels labels = ReadLabels(b, 1, 2, dtype, axis);
  const Name own =
      b.Op("Squeeze", {b.Op("GatherElements", {b.in(0), labels.at}, {{"axis", axis}}), b.Ints({axis})});
  // Where, as 0 times an infinite logarithm would be no number.
  const Name loss = b.Where(labels.valid, b.Op("Neg", {b.Mul(labels.weights, own)}), b.Scalar(dtype, 0));
  b.Result(0, IsSum(b) ? Total(b, loss, dtype) : loss);
  b.Result(1, Total(b, labels.weights, dtype));
}

// (dLoss, labels, weights?) -> (dLogProb)
void NegativeLogLikelihoodGrad(Body& b) {
  const DType dtype = b.type(0).dtype;
  const std::vector<int64_t> shape = b.attributes().Ints("shape");
  const int64_t axis = ClassAxis(b, static_cast<int64_t>(shape.size()));
  const Labels labels = ReadLabels(b, 1, 2, dtype, axis);
  const Name weights = b.Op("Unsqueeze", {labels.weights, b.Ints({axis})});
  const Name own = b.Op("Neg", {b.Mul(EachLoss(b, axis), weights)});
  b.Result(0, AtLabels(b, labels, own, shape, axis, dtype));
}

// (output, labels) -> (loss, weight)
void MeanSquaredError(Body& b) {
  const DType dtype = b.type(0).dtype;
  const Name difference = b.Sub(b.in(0), b.in(1));
  b.Result(0, Total(b, b.Mul(difference, difference), dtype));
  b.Result(1, b.Scalar(dtype, static_cast<double>(b.type(0).elements())));
}

// (dLoss, output, labels) -> (dOutput)
void MeanSquaredErrorGrad(Body& b) {
  const Name d = b.Mul(b.in(0), b.Scalar(b.type(0).dtype, 2));
  b.Result(0, b.Mul(d, b.Sub(b.in(1), b.in(2))));
}

// (logits, labels) -> (loss, weight): max(x, 0) - x z + log(1 + exp(-abs(x)))
void BinaryCrossEntropy(Body& b) {
  const DType dtype = b.type(0).dtype;
  const Name x = b.in(0), one = b.Scalar(dtype, 1);
  const Name tail = b.Op("Log", {b.Add(one, b.Op("Exp", {b.Op("Neg", {b.Op("Abs", {x})})}))});
  const Name loss = b.Add(b.Sub(b.Op("Relu", {x}), b.Mul(x, b.in(1))), tail);
  b.Result(0, Total(b, loss, dtype));
  b.Result(1, b.Scalar(dtype, static_cast<double>(b.type(0).elements())));
}

// (dLoss, logits, labels) -> (dLogits)
void BinaryCrossEntropyGrad(Body& b) {
  b.Result(0, b.Mul(b.in(0), b.Sub(b.Op("Sigmoid", {b.in(1)}), b.in(2))));
}

// (logits, labels) -> (correct, predictions)
void CountCorrect(Body& b) {
  const int64_t axis = ClassAxis(b, b.rank(0));
  const Labels labels = ReadLabels(b, 1, -1, b.type(0).dtype, axis);
  const Name best = b.Op("ArgMax", {b.in(0)}, {{"axis", axis}});
  const Name right = b.Op("Squeeze", {b.Op("Equal", {best, labels.at}), b.Ints({axis})});
  const auto count = [&](const Name& condition) {
    return b.Op("ReduceSum", {b.Cast(condition, DType::kInt64)}, {{"keepdims", int64_t{0}}});
  };
  b.Result(0, count(b.Op("And", {right, labels.valid})));
  b.Result(1, count(labels.valid));
}

const BodyRow kRows[] = {
    {"SoftmaxCrossEntropy", "logits labels weights", "", SoftmaxCrossEntropy},
    {"SoftmaxCrossEntropyGrad", "dLoss logits labels log_sum_exp weights", "", SoftmaxCrossEntropyGrad},
    {"NegativeLogLikelihood", "log_prob labels weights", "", NegativeLogLikelihood},
    {"NegativeLogLikelihoodGrad", "dLoss labels weights", "", NegativeLogLikelihoodGrad},
    {"MeanSquaredError", "output labels", "", MeanSquaredError},
    {"MeanSquaredErrorGrad", "dLoss output labels", "", MeanSquaredErrorGrad},
    {"BinaryCrossEntropyWithLogits", "logits labels", "", BinaryCrossEntropy},
    {"BinaryCrossEntropyWithLogitsGrad", "dLoss logits labels", "", BinaryCrossEntropyGrad},
    {"CountCorrect", "logits labels", "", CountCorrect},
};

}  // namespace

absl::Span<const BodyRow> LossBodies() { return kRows; }

}  // namespace pipec
