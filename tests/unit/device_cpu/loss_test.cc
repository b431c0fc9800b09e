#include <cmath>
#include <limits>

#include "kernel_call.h"

namespace pipec {
namespace {

using testing::HasSubstr;

struct Case {
  Shape logits;
  int64_t axis;
  bool weights = false, sum = true;
  double smoothing = 0;
  int64_t valid_samples = 1000;
};

const std::vector<Case> kCases = {{{6, 5}, 1},
                                  {{6, 5}, 1, true},
                                  {{6, 100}, -1, true, false},
                                  {{6, 5}, 1, false, true, 0.1},
                                  {{6, 5}, 1, true, true, 0.3, 4},
                                  {{3, 5, 2}, 1, true, true, 0.1, 2},
                                  {{3, 5, 2}, 1, false, false, 0.2, 2},
                                  {{3, 2, 300}, 2, false, true, 0, 2},
                                  {{4, 6}, 0, true}};

// The contract's formulas, in float64 and one label after the other. Label 2 is ignored.
class Reference {
 public:
  explicit Reference(const Case& c) : c(c) {
    axis = c.axis < 0 ? c.axis + c.logits.size() : c.axis;
    for (size_t i = 0; i < c.logits.size(); ++i) {
      if (static_cast<int64_t>(i) == axis) continue;
      (static_cast<int64_t>(i) < axis ? outer : inner) *= c.logits[i];
      labels_shape.push_back(c.logits[i]);
    }
    classes = c.logits[axis];
    for (int64_t r = 0; r < outer * inner; ++r) labels.push_back(static_cast<double>((r * 7 + 1) % classes));
    weights = c.weights ? RandomValues(classes, 9, 0.5, 2) : std::vector<double>(classes, 1);
  }
  int64_t rows() const { return outer * inner; }
  bool Counts(int64_t row) const {
    return labels[row] != 2 && row < std::min(c.valid_samples, labels_shape[0]) * (rows() / labels_shape[0]);
  }
  double At(const std::vector<double>& x, int64_t row, int64_t k) const {
    return x[(row / inner * classes + k) * inner + row % inner];
  }
  double LogSumExp(const std::vector<double>& x, int64_t row) const {
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(At(x, row, k));
    return std::log(sum);
  }
  std::vector<double> Losses(const std::vector<double>& x, bool is_log_prob) const {
    std::vector<double> losses;
    for (int64_t row = 0; row < rows(); ++row) {
      losses.push_back(0);
      if (!Counts(row)) continue;
      const double lse = is_log_prob ? 0 : LogSumExp(x, row);
      const double smoothing = is_log_prob ? 0 : c.smoothing;
      const int64_t label = static_cast<int64_t>(labels[row]);
      losses.back() = weights[label] * (1 - smoothing) * (lse - At(x, row, label));
      for (int64_t k = 0; k < classes; ++k) {
        losses.back() += smoothing / classes * weights[k] * (lse - At(x, row, k));
      }
    }
    return losses;
  }
  double Weight() const {
    double weight = 0;
    for (int64_t row = 0; row < rows(); ++row)
      weight += Counts(row) ? weights[static_cast<int64_t>(labels[row])] : 0;
    return weight;
  }
  void Configure(KernelCall& call) const {
    call.Attr("axis", c.axis)
        .Attr("ignore_index", int64_t{2})
        .Attr("reduction", std::string(c.sum ? "sum" : "none"));
    call.scalars.valid_samples = c.valid_samples;
  }
  Shape LossShape() const { return c.sum ? Shape{} : labels_shape; }

  const Case& c;
  int64_t axis, outer = 1, inner = 1, classes;
  Shape labels_shape;
  std::vector<double> labels, weights;
};

double Total(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total;
}

std::vector<double> SumOrEach(const Reference& reference, const std::vector<double>& losses) {
  return reference.c.sum ? std::vector<double>{Total(losses)} : losses;
}

// Each row's loss times its dLoss, summed: what the gradients are the derivative of.
double Weighed(const Reference& reference, const std::vector<double>& losses,
               const std::vector<double>& dloss) {
  double total = 0;
  for (size_t i = 0; i < losses.size(); ++i) total += losses[i] * dloss[reference.c.sum ? 0 : i];
  return total;
}

TEST(SoftmaxCrossEntropy, AndItsGradientFollowTheFormula) {
  for (const Case& c : kCases) {
    const Reference reference(c);
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (DType label_type : {DType::kInt32, DType::kInt64}) {
        const Tensor x = Random(dtype, c.logits, 1),
                     weights = Make(dtype, {reference.classes}, reference.weights);
        const Tensor labels = Make(label_type, reference.labels_shape, reference.labels);
        KernelCall call("SoftmaxCrossEntropy", kHelpers);
        reference.Configure(call);
        call.In(x).In(labels).Attr("label_smoothing", static_cast<float>(c.smoothing));
        if (c.weights) call.In(weights);
        call.Out(dtype, reference.LossShape()).Out(dtype, {}).Out(dtype, reference.labels_shape);
        const double tolerance = dtype == DType::kFloat32 ? 3e-6 : 1e-7;  // 0.1 is a float32
        ExpectNear(call.Get(0), SumOrEach(reference, reference.Losses(Values(x), false)), tolerance);
        ExpectNear(call.Get(1), {reference.Weight()}, 1e-6);
        std::vector<double> log_sum_exp = call.Get(2);
        for (int64_t row = 0; row < reference.rows(); ++row) {
          if (!reference.Counts(row)) continue;
          ASSERT_NEAR(log_sum_exp[row], reference.LogSumExp(Values(x), row), tolerance);
        }
        const std::string bytes = call.Bytes();
        EXPECT_EQ(bytes, call.Threads(3).Misalign(8).Bytes());

        const Tensor dloss = Random(dtype, reference.LossShape(), 5);
        KernelCall grad("SoftmaxCrossEntropyGrad", kHelpers);
        reference.Configure(grad);
        grad.In(dloss).In(x).In(labels).In(Make(dtype, reference.labels_shape, log_sum_exp));
        if (c.weights) grad.In(weights);
        grad.Attr("label_smoothing", static_cast<float>(c.smoothing)).Out(dtype, c.logits);
        const std::vector<double> wanted = NumericGradient(
            [&](const auto& at) { return Weighed(reference, reference.Losses(at, false), Values(dloss)); },
            Values(x));
        ExpectNear(grad.Get(), wanted, dtype == DType::kFloat32 ? 5e-6 : 1e-7);
        EXPECT_EQ(grad.Bytes(), grad.At(1).Threads(2).Bytes());
      }
    }
  }
}

TEST(NegativeLogLikelihood, AndItsGradientFollowTheFormula) {
  for (const Case& c : kCases) {
    const Reference reference(c);
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Tensor x = Random(dtype, c.logits, 1),
                   weights = Make(dtype, {reference.classes}, reference.weights);
      const Tensor labels = Make(DType::kInt64, reference.labels_shape, reference.labels);
      KernelCall call("NegativeLogLikelihood", kHelpers);
      reference.Configure(call);
      call.In(x).In(labels);
      if (c.weights) call.In(weights);
      call.Out(dtype, reference.LossShape()).Out(dtype, {});
      ExpectNear(call.Get(0), SumOrEach(reference, reference.Losses(Values(x), true)), 1e-6);
      ExpectNear(call.Get(1), {reference.Weight()}, 1e-6);
      const Tensor dloss = Random(dtype, reference.LossShape(), 5);
      KernelCall grad("NegativeLogLikelihoodGrad", kHelpers);
      reference.Configure(grad);
      grad.In(dloss).In(labels);
      if (c.weights) grad.In(weights);
      grad.Out(dtype, c.logits);
      const std::vector<double> wanted = NumericGradient(
          [&](const auto& at) { return Weighed(reference, reference.Losses(at, true), Values(dloss)); },
          Values(x));
      ExpectNear(grad.Get(), wanted, 1e-6);
    }
  }
}

TEST(Labels, OutOfRangeAreNamed) {
  const Tensor x = Random(DType::kFloat32, {3, 5}, 1), labels = Make(DType::kInt64, {3}, {0, 4, 5});
  for (const char* op : {"SoftmaxCrossEntropy", "NegativeLogLikelihood"}) {
    KernelCall call(op, kHelpers);
    call.In(x).In(labels).Out(DType::kFloat32, {});
    EXPECT_THAT(call.Error(), HasSubstr("label 5 at flat position 2 is not in [0, 5)")) << op;
    EXPECT_EQ(call.Run().status().code(), absl::StatusCode::kInvalidArgument);
    call.scalars.valid_samples = 2;  // what lies in the padding does not matter
    EXPECT_EQ(call.Error(), "");
    call.scalars.valid_samples = 3;
    EXPECT_EQ(call.Attr("ignore_index", int64_t{5}).Error(), "");
  }
  const Tensor negative = Make(DType::kInt32, {3}, {0, -1, 2});
  KernelCall count("CountCorrect", kHelpers);
  count.In(x).In(negative).Out(DType::kInt64, {}).Out(DType::kInt64, {});
  EXPECT_THAT(count.Error(), HasSubstr("label -1 at flat position 1"));
  KernelCall shape("SoftmaxCrossEntropy", kHelpers);
  EXPECT_THAT(shape.In(x).In(Make(DType::kInt64, {2}, {0, 0})).Out(DType::kFloat32, {}).Error(),
              HasSubstr("wanted int64 or int32 of shape [3]"));
}

TEST(SoftmaxCrossEntropy, SurvivesLargeLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Make(DType::kFloat32, {1, 3}, {1000, -inf, 990}), label = Make(DType::kInt64, {1}, {2});
  KernelCall call("SoftmaxCrossEntropy", kHelpers);
  ExpectNear(call.In(x).In(label).Out(DType::kFloat32, {}).Get(), {10.0000454}, 1e-6);
}

TEST(ElementLosses, AndTheirGradientsCountOnlyRealSamples) {
  struct Loss {
    std::string op;
    std::function<double(double, double)> f;
  };
  const std::vector<Loss> losses = {
      {"MeanSquaredError", [](double x, double z) { return (x - z) * (x - z); }},
      {"BinaryCrossEntropyWithLogits", [](double x, double z) {
         return -z * std::log(1 / (1 + std::exp(-x))) - (1 - z) * std::log(1 - 1 / (1 + std::exp(-x)));
       }}};
  const Shape shape = {5, 6000};  // more than one block of the sum
  for (const Loss& loss : losses) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Tensor x = Random(dtype, shape, 1), z = Random(dtype, shape, 2, 0, 1);
      for (int64_t valid : {5, 3, 0}) {
        const int64_t n = valid * 6000;
        double total = 0;
        std::vector<double> gradient(30000);
        const std::vector<double> xs = Values(x), zs = Values(z);
        for (int64_t i = 0; i < n; ++i) {
          total += loss.f(xs[i], zs[i]);
          gradient[i] = 0.5 * (loss.f(xs[i] + 1e-5, zs[i]) - loss.f(xs[i] - 1e-5, zs[i])) / 2e-5;
        }
        KernelCall call(loss.op, kHelpers);
        call.In(x).In(z).Out(dtype, {}).Out(dtype, {});
        call.scalars.valid_samples = valid;
        ExpectNear(call.Get(0), {total}, dtype == DType::kFloat32 ? 1e-6 : 1e-12);
        ExpectNear(call.Get(1), {static_cast<double>(n)}, 0);
        EXPECT_EQ(call.Bytes(), call.Threads(3).Bytes());
        KernelCall grad(loss.op + "Grad", kHelpers);
        grad.In(Make(dtype, {}, {0.5})).In(x).In(z).Out(dtype, shape);
        grad.scalars.valid_samples = valid;
        ExpectNear(grad.Get(), gradient, dtype == DType::kFloat32 ? 1e-6 : 1e-8);
        EXPECT_EQ(grad.Bytes(), grad.At(1).Threads(2).Bytes());
      }
    }
  }
  const Tensor x = Make(DType::kFloat32, {2}, {200, -200}), z = Make(DType::kFloat32, {2}, {0, 1});
  EXPECT_THAT(KernelCall("BinaryCrossEntropyWithLogits", kHelpers).In(x).In(z).Out(DType::kFloat32, {}).Get(),
              testing::ElementsAre(400));
}

// Padding of a merged axis ([B*T,C]) and of a second one ([T,B,C]): the losses of the valid samples alone.
TEST(Losses, LeaveOutThePaddingWhereverTheBatchAxisLies) {
  const Tensor scores = Random(DType::kFloat32, {2, 3, 4}, 1);  // B = 2, T = 3
  const std::vector<double> x = Values(scores), label = {0, 3, 1, 2, 2, 0};
  const auto at = [&](int b, int t, int c) { return x[(b * 3 + t) * 4 + c]; };
  std::vector<double> turned, turned_labels;
  for (int t = 0; t < 3; ++t) {
    for (int b = 0; b < 2; ++b) {
      for (int c = 0; c < 4; ++c) turned.push_back(at(b, t, c));
      turned_labels.push_back(label[b * 3 + t]);
    }
  }
  double wanted = 0, squares = 0;
  for (int t = 0; t < 3; ++t) {
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += std::exp(at(0, t, c)), squares += at(0, t, c) * at(0, t, c);
    wanted += std::log(sum) - at(0, t, static_cast<int>(label[t]));
  }
  struct Form {
    Shape scores, labels;
    std::vector<double> x, label;
    int64_t batch_axis;
  };
  for (const Form& form :
       {Form{{6, 4}, {6}, x, label, 0}, Form{{3, 2, 4}, {3, 2}, turned, turned_labels, 1}}) {
    const Tensor logits = Make(DType::kFloat32, form.scores, form.x);
    const Tensor labels = Make(DType::kInt64, form.labels, form.label);
    const auto call = [&](const char* op, std::vector<Tensor> inputs) {
      KernelCall made(op, kHelpers);
      for (const Tensor& input : inputs) made.In(input);
      made.Attr("batch_axis", form.batch_axis).Attr("samples", int64_t{2});
      made.scalars.valid_samples = 1;
      return made;
    };
    KernelCall entropy = call("SoftmaxCrossEntropy", {logits, labels});
    entropy.Out(DType::kFloat32, {}).Out(DType::kFloat32, {}).Out(DType::kFloat32, form.labels);
    ExpectNear(entropy.Get(0), {wanted}, 1e-5);
    ExpectNear(entropy.Get(1), {3}, 0);
    KernelCall count = call("CountCorrect", {logits, labels});
    EXPECT_THAT(count.Out(DType::kInt64, {}).Out(DType::kInt64, {}).Get(1), testing::ElementsAre(3));
    const Tensor zero = Make(DType::kFloat32, form.scores, std::vector<double>(24, 0));
    KernelCall mse = call("MeanSquaredError", {logits, zero});
    mse.Out(DType::kFloat32, {}).Out(DType::kFloat32, {});
    ExpectNear(mse.Get(0), {squares}, 1e-5);
    ExpectNear(mse.Get(1), {12}, 0);
    KernelCall grad = call("MeanSquaredErrorGrad", {Make(DType::kFloat32, {}, {0.5}), logits, zero});
    std::vector<double> gradient = form.x;
    for (int i = 0; i < 24; ++i) {
      if (form.batch_axis == 0 ? i >= 12 : i / 4 % 2 == 1) gradient[i] = 0;
    }
    ExpectNear(grad.Out(DType::kFloat32, form.scores).Get(), gradient, 1e-6);
  }
}

TEST(CountCorrect, TakesTheFirstOfEqualsAndSkipsWhatDoesNotCount) {
  const Tensor x = Make(DType::kFloat32, {5, 3}, {1, 1, 0, 0, 2, 2, 0, 0, 1, 3, 2, 1, 0, 0, 9});
  const Tensor labels = Make(DType::kInt64, {5}, {0, 2, 2, -100, 2});
  KernelCall call("CountCorrect", kHelpers);
  call.In(x).In(labels).Out(DType::kInt64, {}).Out(DType::kInt64, {}).Attr("ignore_index", int64_t{-100});
  call.scalars.valid_samples = 4;
  EXPECT_THAT(call.Get(0), testing::ElementsAre(2));
  EXPECT_THAT(call.Get(1), testing::ElementsAre(3));
  // Classes along the first axis: the transpose.
  const Tensor columns = Make(DType::kFloat64, {3, 2}, {0, 5, 1, 0, 0, 0});
  KernelCall first("CountCorrect", kHelpers);
  first.In(columns).In(Make(DType::kInt32, {2}, {1, 0})).Attr("axis", int64_t{0});
  first.Out(DType::kInt64, {}).Out(DType::kInt64, {});
  EXPECT_THAT(first.Get(0), testing::ElementsAre(2));
}

}  // namespace
}  // namespace pipec
