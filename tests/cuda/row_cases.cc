#include "tests/cuda/row_cases.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

MakeCase Reduction(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const DType dtype =
        Draw(random, 0, 4) ? AnyFloat(random) : (Draw(random, 0, 1) ? DType::kInt64 : DType::kInt32);
    Shape shape = AnyShape(random);
    // Of a product of few elements near 1, not of none or of infinities.
    if (op == "ReduceProd" && NumElements(shape) > 64) shape = {Draw(random, 1, 5), Draw(random, 1, 8)};
    const bool all =
        op != "ReduceProd" && Draw(random, 0, 7) == 0;  // and so many that all of the device adds them
    if (all) shape = {Draw(random, 180, 230), Draw(random, 180, 230)};
    AddInput(c, {dtype, shape}, random, op == "ReduceProd");
    const bool keep = Draw(random, 0, 1) != 0;
    c.spec.attributes.Set("keepdims", int64_t{keep});
    std::vector<int64_t> axes;
    Shape result;
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      const bool gone = all || Draw(random, 0, 1) != 0;
      if (gone) axes.push_back(Draw(random, 0, 1) ? axis : axis - static_cast<int64_t>(shape.size()));
      if (!gone || keep) result.push_back(gone ? 1 : shape[axis]);
    }
    if (axes.empty()) c.spec.attributes.Set("noop_with_empty_axes", int64_t{1});
    c.inputs.push_back(Int64s(axes));
    c.spec.inputs.push_back({{DType::kInt64, {static_cast<int64_t>(axes.size())}}});
    c.constants = {1};
    c.spec.outputs.push_back({{dtype, result}});
    return c;
  };
}

// Labels of every row, some ignored, and what belongs to them; the operands from the logits on.
void AddLogits(KernelCase& c, DType dtype, Random& random) {
  const int64_t batch = Draw(random, 1, 5), classes = Draw(random, 0, 9) ? Draw(random, 1, 70) : 1100;
  Shape logits{batch, classes}, rows{batch};
  if (const int64_t more = Draw(random, 0, 3); more > 1) {
    const bool last = Draw(random, 0, 1) != 0;  // the classes
    logits = last ? Shape{batch, more, classes} : Shape{batch, classes, more};
    rows.push_back(more);
    c.spec.attributes.Set("axis", int64_t{last ? -1 : 1});
  }
  AddInput(c, {dtype, logits}, random);
  std::vector<int64_t> labels(NumElements(rows));
  const bool ignores = Draw(random, 0, 1) != 0;
  if (ignores) c.spec.attributes.Set("ignore_index", int64_t{-100});
  for (int64_t& label : labels)
    label = ignores && Draw(random, 0, 3) == 0 ? -100 : Draw(random, 0, classes - 1);
  if (Draw(random, 0, 1)) {
    c.spec.inputs.push_back({{DType::kInt64, rows}});
    c.inputs.push_back(Int64s(labels));
  } else {
    const std::vector<int32_t> narrow(labels.begin(), labels.end());
    c.spec.inputs.push_back({{DType::kInt32, rows}});
    c.inputs.emplace_back(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(int32_t));
  }
  c.scalars.valid_samples = Draw(random, 1, batch);
}

// The classes' weights, or none.
void AddWeights(KernelCase& c, DType dtype, Random& random) {
  const Shape& logits = c.spec.inputs[c.spec.op == "SoftmaxCrossEntropy" ? 0 : 1].type.shape;
  const int64_t axis = c.spec.attributes.Int("axis", -1);
  if (Draw(random, 0, 1)) AddInput(c, {dtype, {axis < 0 ? logits.back() : logits[axis]}}, random, true);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("label_smoothing", 0.1f);
}

KernelCase CrossEntropy(Random& random) {
  KernelCase c = Named("ai.pipec", "SoftmaxCrossEntropy");
  const DType dtype = AnyFloat(random);
  AddLogits(c, dtype, random);
  AddWeights(c, dtype, random);
  const bool sum = Draw(random, 0, 1) != 0;
  c.spec.attributes.Set("reduction", std::string(sum ? "sum" : "none"));
  const Shape rows = c.spec.inputs[1].type.shape;
  c.spec.outputs = {{{dtype, sum ? Shape{} : rows}}, {{dtype, {}}}, {{dtype, rows}}};
  c.spec.outputs[Draw(random, 1, 2)].present = Draw(random, 0, 1) != 0;
  DrawOwnCasts(c, dtype, {0}, false, random);
  return c;
}

KernelCase CrossEntropyGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "SoftmaxCrossEntropyGrad");
  const DType dtype = AnyFloat(random);
  const bool sum = Draw(random, 0, 1) != 0;
  c.spec.attributes.Set("reduction", std::string(sum ? "sum" : "none"));
  AddInput(c, {dtype, {}}, random);
  AddLogits(c, dtype, random);
  const Shape rows = c.spec.inputs[2].type.shape;
  if (!sum) {
    c.spec.inputs[0].type.shape = rows;
    c.inputs[0] = RandomContents({dtype, rows}, random);
  }
  // Far above every logit's own: the exponentials stay small.
  AddInput(c, {dtype, rows}, random, true);
  AddWeights(c, dtype, random);
  c.spec.outputs.push_back(c.spec.inputs[1]);
  if (Draw(random, 0, 1)) c.in_place = {1};
  DrawOwnCasts(c, dtype, {1}, true, random);
  return c;
}

KernelCase CountCorrect(Random& random) {
  KernelCase c = Named("ai.pipec", "CountCorrect");
  AddLogits(c, AnyFloat(random), random);
  c.spec.outputs = {{{DType::kInt64, {}}}, {{DType::kInt64, {}}}};
  return c;
}

MakeCase AlongAxis(const std::string& domain, const std::string& op, int inputs) {
  return [=](Random& random) {
    KernelCase c = Named(domain, op);
    TensorType type{AnyFloat(random), AnyShape(random)};
    if (op == "Hardmax" && type.shape.empty()) type.shape = {5};
    // Sums of so many terms of either sign differ by more than float32's tolerance.
    if (Draw(random, 0, 9) == 0) type = {inputs == 1 ? type.dtype : DType::kFloat64, {2, 1500}};
    for (int k = 0; k < inputs; ++k) AddInput(c, type, random);
    c.spec.outputs.push_back({type});
    if (const auto rank = static_cast<int64_t>(type.shape.size()); rank > 0) {
      c.spec.attributes.Set("axis", Draw(random, -rank, rank - 1));
    }
    c.in_place = {static_cast<int>(Draw(random, -1, inputs - 1))};
    return c;
  };
}

// X, and the axis from which on it is normalised; the elements of a row and the rows.
struct Normalised {
  TensorType x, row, statistics;
};
Normalised DrawNormalised(KernelCase& c, Random& random) {
  Normalised n;
  n.x = {AnyFloat(random), {Draw(random, 1, 9), Draw(random, 1, 4), Draw(random, 2, 40)}};
  const int64_t axis = Draw(random, 1, 2);
  c.spec.attributes.Set("axis", axis);
  n.row = {n.x.dtype, Shape(n.x.shape.begin() + axis, n.x.shape.end())};
  n.statistics = {n.x.dtype == DType::kFloat64 ? WideFloat(random) : DType::kFloat32,
                  Shape(n.x.shape.begin(), n.x.shape.begin() + axis)};
  n.statistics.shape.resize(n.x.shape.size(), 1);
  return n;
}

KernelCase LayerNormalization(const std::string& domain, Random& random) {
  KernelCase c = Named(domain, "LayerNormalization");
  const Normalised n = DrawNormalised(c, random);
  AddInput(c, n.x, random);
  AddInput(c, n.row, random);
  if (Draw(random, 0, 1)) AddInput(c, n.row, random);
  c.spec.outputs = {{n.x}, {n.statistics}, {n.statistics}};
  c.spec.outputs[Draw(random, 1, 2)].present = Draw(random, 0, 1) != 0;
  if (!domain.empty()) DrawOwnCasts(c, n.x.dtype, {0}, true, random);
  return c;
}

KernelCase LayerNormalizationInputGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "LayerNormalizationInputGrad");
  const Normalised n = DrawNormalised(c, random);
  AddInput(c, n.x, random);
  AddInput(c, n.x, random);
  AddInput(c, n.row, random);
  AddInput(c, n.statistics, random);
  AddInput(c, n.statistics, random, true);
  c.spec.outputs = {{n.x}};
  c.in_place = {static_cast<int>(Draw(random, -1, 1))};
  DrawOwnCasts(c, n.x.dtype, {0, 1}, true, random);
  return c;
}

KernelCase LayerNormalizationWeightGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "LayerNormalizationWeightGrad");
  const Normalised n = DrawNormalised(c, random);
  AddInput(c, n.x, random);
  AddInput(c, n.x, random);
  AddInput(c, n.statistics, random);
  AddInput(c, n.statistics, random, true);
  c.spec.outputs = {{n.row}};
  if (Draw(random, 0, 1)) c.spec.outputs.push_back({n.row});
  DrawOwnCasts(c, n.x.dtype, {0, 1}, false, random);
  return c;
}

// Values of which several are equal.
TensorType AddFew(KernelCase& c, Random& random, const Shape& shape = {}) {
  TensorType type{Draw(random, 0, 2) ? AnyFloat(random) : DType::kInt32,
                  {Draw(random, 1, 4), Draw(random, 1, 9), Draw(random, 1, 5)}};
  if (Draw(random, 0, 4) == 0) type.shape = {2, 300};
  if (!shape.empty()) type.shape = shape;
  std::string contents(type.elements() * 8, '\0');
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double value = static_cast<double>(Draw(random, -3, 3));
    std::copy_n(reinterpret_cast<const char*>(&value), 8, contents.data() + i * 8);
  }
  c.spec.inputs.push_back({type});
  c.inputs.push_back(IsFloat(type.dtype) ? Converted(contents, type) : RandomContents(type, random));
  return type;
}

MakeCase Extreme(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const TensorType type = AddFew(c, random);
    const int64_t axis = Draw(random, 0, static_cast<int64_t>(type.shape.size()) - 1);
    c.spec.attributes.Set("axis", axis);
    c.spec.attributes.Set("select_last_index", Draw(random, 0, 1));
    Shape shape = type.shape;
    shape[axis] = 1;
    c.spec.outputs.push_back({{DType::kInt64, shape}});
    return c;
  };
}

KernelCase TopK(Random& random) {
  KernelCase c = Named("", "TopK");
  const bool many = Draw(random, 0, 2) == 0;  // so that rows are sorted
  const TensorType type =
      AddFew(c, random, many ? Shape{Draw(random, 1, 2), 300, Draw(random, 1, 2)} : Shape());
  const int64_t axis = many ? 1 : Draw(random, 0, static_cast<int64_t>(type.shape.size()) - 1);
  Shape shape = type.shape;
  shape[axis] = many ? Draw(random, 1, shape[axis]) : Draw(random, 1, std::min<int64_t>(shape[axis], 6));
  AddConstant(c, {shape[axis]});
  if (Draw(random, 0, 1)) c.constants.clear();
  c.spec.attributes.Set("axis", axis);
  c.spec.attributes.Set("largest", Draw(random, 0, 1));
  c.spec.outputs = {{{type.dtype, shape}}, {{DType::kInt64, shape}}};
  return c;
}

MakeCase Cumulative(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    TensorType type{Draw(random, 0, 2) ? AnyFloat(random) : DType::kInt64,
                    {Draw(random, 1, 5), Draw(random, 1, 7), Draw(random, 1, 5)}};
    const bool long_rows = op == "CumSum" && Draw(random, 0, 3) == 0;  // a block each
    if (long_rows) type.shape = {Draw(random, 1, 2), Draw(random, 256, 700), Draw(random, 1, 2)};
    AddInput(c, type, random);
    AddConstant(c, {long_rows ? 1 : Draw(random, -3, 2)});
    c.spec.inputs[1].type.shape = {};
    c.spec.attributes.Set("exclusive", Draw(random, 0, 1));
    c.spec.attributes.Set("reverse", Draw(random, 0, 1));
    c.spec.outputs.push_back({type});
    return c;
  };
}

// Where the samples of a batch lie, or that nothing is known of them.
void SetSamples(KernelCase& c, const Shape& shape, Random& random) {
  c.scalars.first_sample = Draw(random, 0, 100);
  if (shape.empty() || Draw(random, 0, 3) == 0) {
    c.spec.attributes.Set("batch_axis", int64_t{-1});
    return;
  }
  const int64_t axis = Draw(random, 0, static_cast<int64_t>(shape.size()) - 1);
  c.spec.attributes.Set("batch_axis", axis);
  if (shape[axis] % 2 == 0 && shape[axis] > 0 && Draw(random, 0, 1))
    c.spec.attributes.Set("samples", shape[axis] / 2);
  c.scalars.valid_samples = Draw(random, 0, shape[axis]);
}

MakeCase Dropout(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const TensorType type{AnyFloat(random), AnyShape(random)};
    AddInput(c, type, random);
    c.spec.outputs.push_back({type});
    if (op == "Dropout" && Draw(random, 0, 1)) c.spec.outputs.push_back({{DType::kBool, type.shape}});
    if (Draw(random, 0, 1)) c.in_place = {0};
    constexpr float kRatios[] = {0, 0.1f, 0.5f, 1};
    c.spec.attributes.Set("ratio", kRatios[Draw(random, 0, 3)]);
    c.spec.attributes.Set("key", Draw(random, 0, 1 << 20));
    SetSamples(c, type.shape, random);
    c.scalars.seed = random();
    c.scalars.step = Draw(random, 0, 1000);
    c.scalars.training = Draw(random, 0, 4) != 0;
    return c;
  };
}

MakeCase ElementLoss(const std::string& op, bool gradient) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const TensorType type{AnyFloat(random), AnyShape(random)};
    if (gradient) AddInput(c, {type.dtype, {}}, random);
    AddInput(c, type, random);
    AddInput(c, type, random);
    SetSamples(c, type.shape, random);
    if (gradient) {
      c.spec.outputs.push_back({type});
      // One element of it may have been read as the gradient of the loss.
      c.in_place = {static_cast<int>(Draw(random, 1, 2))};
    } else {
      c.spec.outputs = {{{type.dtype, {}}}, {{type.dtype, {}}}};
      c.spec.outputs[Draw(random, 0, 1)].present = Draw(random, 0, 1) != 0;
    }
    return c;
  };
}

KernelCase NegativeLogLikelihood(Random& random) {
  KernelCase c = Named("ai.pipec", "NegativeLogLikelihood");
  const DType dtype = AnyFloat(random);
  AddLogits(c, dtype, random);
  const Shape logits = c.spec.inputs[0].type.shape, rows = c.spec.inputs[1].type.shape;
  const int64_t axis = c.spec.attributes.Int("axis", -1);
  if (Draw(random, 0, 1)) AddInput(c, {dtype, {axis < 0 ? logits.back() : logits[axis]}}, random, true);
  const bool sum = Draw(random, 0, 1) != 0;
  c.spec.attributes.Set("reduction", std::string(sum ? "sum" : "none"));
  c.spec.outputs = {{{dtype, sum ? Shape{} : rows}}, {{dtype, {}}}};
  return c;
}

KernelCase NegativeLogLikelihoodGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "NegativeLogLikelihoodGrad");
  const KernelCase forward = NegativeLogLikelihood(random);
  const DType dtype = forward.spec.inputs[0].type.dtype;
  c.spec.attributes = forward.spec.attributes;
  c.scalars = forward.scalars;
  const bool sum = c.spec.attributes.String("reduction") == "sum";
  AddInput(c, {dtype, sum ? Shape{} : forward.spec.inputs[1].type.shape}, random);
  for (size_t k = 1; k < forward.inputs.size(); ++k) {
    c.spec.inputs.push_back(forward.spec.inputs[k]);
    c.inputs.push_back(forward.inputs[k]);
  }
  c.spec.outputs = {forward.spec.inputs[0]};
  return c;
}

}  // namespace

void AddRowCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  for (const char* op :
       {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    cases[{"", op}] = Reduction(op);
  }
  for (const char* op : {"ArgMax", "ArgMin"}) cases[{"", op}] = Extreme(op);
  cases[{"", "Hardmax"}] = AlongAxis("", "Hardmax", 1);
  cases[{"", "TopK"}] = TopK;
  for (const char* op : {"CumProd", "CumSum"}) cases[{"", op}] = Cumulative(op);
  for (const char* op : {"Dropout", "DropoutGrad"}) cases[{"ai.pipec", op}] = Dropout(op);
  for (const char* op : {"MeanSquaredError", "BinaryCrossEntropyWithLogits"}) {
    cases[{"ai.pipec", op}] = ElementLoss(op, false);
    cases[{"ai.pipec", std::string(op) + "Grad"}] = ElementLoss(std::string(op) + "Grad", true);
  }
  cases[{"ai.pipec", "NegativeLogLikelihood"}] = NegativeLogLikelihood;
  cases[{"ai.pipec", "NegativeLogLikelihoodGrad"}] = NegativeLogLikelihoodGrad;
  cases[{"ai.pipec", "SoftmaxCrossEntropy"}] = CrossEntropy;
  cases[{"ai.pipec", "SoftmaxCrossEntropyGrad"}] = CrossEntropyGrad;
  cases[{"ai.pipec", "CountCorrect"}] = CountCorrect;
  for (const char* op : {"Softmax", "LogSoftmax"}) cases[{"", op}] = AlongAxis("", op, 1);
  for (const char* op : {"SoftmaxGrad", "LogSoftmaxGrad"})
    cases[{"ai.pipec", op}] = AlongAxis("ai.pipec", op, 2);
  for (const char* domain : {"", "ai.pipec"}) {
    cases[{domain, "LayerNormalization"}] = [domain](Random& random) {
      return LayerNormalization(domain, random);
    };
  }
  cases[{"ai.pipec", "LayerNormalizationInputGrad"}] = LayerNormalizationInputGrad;
  cases[{"ai.pipec", "LayerNormalizationWeightGrad"}] = LayerNormalizationWeightGrad;
}

}  // namespace pipec
