// Which loss is taken or made, what it keeps in the graph, and which losses are refused.
#include <string>

#include "build_training.h"
#include "gmock/gmock.h"

namespace pipec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(BuildLossTest, CrossEntropyIsTheDefaultAndSumsLossAndWeight) {
  SmallModel m(DType::kFloat32);
  m.module().microbatch_size = 2;
  Value* logits = m.Op("MatMul", {m.Input({2, 7, 3}), m.Parameter({3, 5})});
  logits->batch_axis = 0;
  Value* other = m.Op("Exp", {m.Input({4})});
  m.graph().outputs = {logits, other};
  CompileOptions options;
  options.label_smoothing = 0.125;
  options.ignore_index = 3;
  options.microbatches = 6;
  options.replicas = 2;
  ASSERT_TRUE(BuildTraining(m.module(), options).ok());

  const Value* labels = m.graph().FindValue("labels");
  ASSERT_NE(labels, nullptr);
  EXPECT_EQ(labels->kind(), ValueKind::kInput);
  EXPECT_EQ(labels->type, (TensorType{DType::kInt64, {2, 7}}));
  EXPECT_EQ(labels->batch_axis, 0);
  const Training& training = m.module().training;
  const Node* helper = training.loss_sum->producer()->input(1)->producer();
  EXPECT_TRUE(helper->Is("SoftmaxCrossEntropy", kPipecDomain));
  EXPECT_EQ(helper->attributes.Int("axis"), 2);
  EXPECT_EQ(helper->attributes.Int("ignore_index"), 3);
  EXPECT_EQ(helper->attributes.Float("label_smoothing"), 0.125f);
  EXPECT_EQ(training.loss_weight->producer()->input(1), helper->output(1));
  ASSERT_NE(training.correct, nullptr);
  EXPECT_EQ(training.correct->producer()->attributes.Int("eval_only"), 1);
  EXPECT_EQ(training.correct->producer()->input(1)->producer()->attributes.Int("eval_only"), 1);
  EXPECT_EQ(training.gradient_scales.at(0)->attributes.Float("weight"), 12);
  EXPECT_THAT(m.graph().outputs, IsEmpty());
  EXPECT_EQ(m.graph().FindValue("Exp"), nullptr);
  EXPECT_THAT(m.module().notes, UnorderedElementsAre(HasSubstr("loss: cross-entropy of output 'MatMul'"),
                                                     HasSubstr("outputs Exp")));
}

// Import spells a mean cross-entropy as sum / weight: over microbatches both are added up before the
// division.
TEST(BuildLossTest, TakesAnInputNamedLabelsThatFits) {
  SmallModel m;
  Value* declared = m.Input({2, 3});
  m.graph().Rename(declared, "labels");
  m.graph().outputs = {m.Op("Mul", {m.Input({2, 3}), m.Parameter({2, 3})})};
  CompileOptions options;
  options.loss = "mse";
  ASSERT_TRUE(BuildTraining(m.module(), options).ok());
  EXPECT_EQ(m.graph().inputs().size(), 2);
  ASSERT_EQ(declared->uses().size(), 2);  // the loss and its gradient
  EXPECT_TRUE(declared->uses()[0].node->Is("MeanSquaredError", kPipecDomain));
}

TEST(BuildLossTest, OwnMeanIsTakenApart) {
  SmallModel m(DType::kFloat32);
  Value* logits = m.Op("MatMul", {m.Input({4, 3}), m.Parameter({3, 5})});
  auto parts =
      m.Ops("SoftmaxCrossEntropy", {logits, m.Ints({4}, {0, 1, 2, 3})},
            {{"axis", int64_t{1}}, {"reduction", std::string("sum")}, {"ignore_index", int64_t{-100}}},
            kPipecDomain, 3);
  m.graph().outputs = {m.Op("Identity", {m.Op("Div", {parts[0], parts[1]})})};
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  const Training& training = m.module().training;
  EXPECT_EQ(training.loss_sum->producer()->input(1), parts[0]);
  EXPECT_EQ(training.loss_weight->producer()->input(1), parts[1]);
  EXPECT_NE(training.correct, nullptr);
  EXPECT_EQ(m.graph().FindValue("Div"), nullptr);
}

TEST(BuildLossTest, MseAndBceTakeLabelsOfTheOutputsType) {
  SmallModel mse;
  mse.graph().outputs = {mse.Op("Mul", {mse.Input({2, 3}), mse.Parameter({3})})};
  CompileOptions options;
  options.loss = "mse";
  ASSERT_TRUE(BuildTraining(mse.module(), options).ok());
  EXPECT_EQ(mse.graph().FindValue("labels")->type, (TensorType{DType::kFloat64, {2, 3}}));
  EXPECT_EQ(mse.module().training.correct, nullptr);

  SmallModel bce;
  Value* logits = bce.Op("Mul", {bce.Input({2, 3}), bce.Parameter({3})});
  bce.graph().outputs = {bce.Op("Sigmoid", {logits})};
  options.loss = "bce";
  ASSERT_TRUE(BuildTraining(bce.module(), options).ok());
  EXPECT_EQ(bce.module().training.loss_sum->producer()->input(1)->producer()->input(0), logits);
  EXPECT_EQ(bce.graph().FindValue("Sigmoid"), nullptr);
}

TEST(BuildLossTest, LossesThatAreNoneAreRefused) {
  const auto message = [](auto build, const std::string& loss) {
    SmallModel m;
    build(m);
    CompileOptions options;
    options.loss = loss;
    const absl::Status status = BuildTraining(m.module(), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const auto matrix = [](SmallModel& m) {
    m.graph().outputs = {m.Op("Mul", {m.Input({2, 3}), m.Parameter({3})})};
  };
  EXPECT_THAT(message(matrix, "output:Mul"),
              HasSubstr("output 'Mul' is float64[2,3], but a loss is a float of one element"));
  EXPECT_THAT(message(matrix, "output:loss"),
              HasSubstr("names no output of the model, which has outputs 'Mul' float64[2,3]"));
  EXPECT_THAT(message(matrix, "hinge"), HasSubstr("there are auto, output:NAME"));
  EXPECT_THAT(message([](SmallModel& m) { MakeLoss(m, m.Op("Exp", {m.Input({3})})); }, "auto"),
              HasSubstr("depends on no parameter"));
  EXPECT_THAT(message([](SmallModel& m) { m.graph().outputs = {m.Op("Shape", {m.Parameter({3})})}; }, "auto"),
              HasSubstr("needs a float output"));
  EXPECT_THAT(message(
                  [](SmallModel& m) {
                    Value* labels = m.Input({1});
                    m.graph().Rename(labels, "labels");
                    m.graph().outputs = {m.Op("Mul", {labels, m.Parameter({2})})};
                  },
                  "mse"),
              HasSubstr("the model has another value of that name"));
  EXPECT_THAT(message(
                  [](SmallModel& m) {
                    Value* h = m.Op("Floor", {m.Parameter({3})});
                    MakeLoss(m, m.Op("Mul", {m.Input({3}), h}));
                  },
                  "auto"),
              HasSubstr("no gradient reaches a parameter"));
}

// Cut into microbatches, a loss must be a mean or sum over samples, or linear in them; whole batches may be
// mixed at will.
TEST(BuildLossTest, OtherMixturesOfSamplesAreRefusedUnlessTheBatchStaysWhole) {
  const auto status = [](auto loss, int microbatches) {
    SmallModel m;
    m.module().microbatch_size = 4;
    Value* y = m.Op("Mul", {m.Input({4, 3}), m.Parameter({3})});
    y->batch_axis = 0;
    m.graph().outputs = {loss(m, y)};
    CompileOptions options;
    options.microbatches = microbatches;
    return BuildTraining(m.module(), options);
  };
  const auto mean = [](SmallModel& m, Value* y) {
    return m.Op("ReduceMean", {y}, {{"keepdims", int64_t{0}}});
  };
  const auto rows = [](SmallModel& m, Value* y) {
    Value* maximum = m.Op("ReduceMax", {y, m.Ints({1})}, {{"keepdims", int64_t{0}}});
    maximum->batch_axis = 0;
    return m.Op("Mul", {m.Op("ReduceMean", {maximum}, {{"keepdims", int64_t{0}}}), m.Constant({}, {0.5})});
  };
  const auto maximum = [](SmallModel& m, Value* y) {
    return m.Op("ReduceMax", {y}, {{"keepdims", int64_t{0}}});
  };
  const auto root = [](SmallModel& m, Value* y) {
    Value* square = m.Op("Mul", {y, y});
    square->batch_axis = 0;
    return m.Op("Sqrt", {m.Op("ReduceMean", {square}, {{"keepdims", int64_t{0}}})});
  };
  const auto centred = [](SmallModel& m, Value* y) {
    Value* difference = m.Op("Sub", {y, m.Op("ReduceMean", {y, m.Ints({0})})});
    difference->batch_axis = 0;
    return m.Op("ReduceMean", {m.Op("Mul", {difference, difference})}, {{"keepdims", int64_t{0}}});
  };
  EXPECT_TRUE(status(mean, 8).ok()) << status(mean, 8);
  EXPECT_TRUE(status(rows, 8).ok()) << status(rows, 8);
  EXPECT_THAT(status(maximum, 8).message(), HasSubstr("node ReduceMax (ReduceMax) reduces over the samples"));
  EXPECT_THAT(status(centred, 8).message(), HasSubstr("node Sub (Sub) is not linear"));
  EXPECT_THAT(status(root, 8).message(), HasSubstr("node Sqrt (Sqrt) is not linear"));
  EXPECT_TRUE(status(maximum, 1).ok());
  EXPECT_TRUE(status(centred, 1).ok());
  EXPECT_TRUE(status(root, 1).ok());
}

}  // namespace
}  // namespace pipec
