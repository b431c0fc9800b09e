// The verifier of level training catches what a faulty pass could leave behind: one mutant for each thing it
// refuses.
#include <string>

#include "compiler/ir/verify.h"
#include "gmock/gmock.h"
#include "passes/passes.h"
#include "small_model.h"

namespace pipec {
namespace {

using testing::HasSubstr;

// Two layers with a shared weight and a bias, trained with momentum.
class VerifyTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    Value* w = m_.Parameter({3, 3});
    Value* h = m_.Op("Relu", {m_.Op("MatMul", {m_.Input({2, 3}), w})});
    Value* y = m_.Op("Add", {m_.Op("MatMul", {h, w}), m_.Parameter({3})});
    m_.graph().outputs = {m_.Op("ReduceSum", {y}, {{"keepdims", int64_t{0}}})};
    PassContext context;
    context.options.optimizer = "momentum";
    for (auto pass : {BuildLoss, BuildGradients, BuildUpdate, SplitBackward}) {
      const auto result = pass(m_.module(), context);
      ASSERT_TRUE(result.ok()) << result.status();
    }
    ASSERT_TRUE(VerifyTraining(m_.module()).ok()) << VerifyTraining(m_.module());
  }

  void ExpectRefused(const std::string& why) {
    const absl::Status status = VerifyTraining(m_.module());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr(why));
  }
  Node* Find(absl::string_view op, Kind kind) {
    Node* node = m_.graph().first_node();
    while (node && !(node->op() == op && node->kind == kind)) node = node->next();
    return node;
  }
  Training& training() { return m_.module().training; }
  TrainedParameter& weight() { return training().parameters[0]; }

  SmallModel m_;
};

TEST_F(VerifyTrainingTest, NoLoss) {
  training().loss_sum = nullptr;
  ExpectRefused("there is no loss");
}

TEST_F(VerifyTrainingTest, LossOfAnotherType) {
  training().loss_sum->type.dtype = DType::kFloat32;
  ExpectRefused("is not a float64 scalar made by a forward Accumulate");
}

TEST_F(VerifyTrainingTest, WeightThatIsNoSum) {
  training().loss_weight = Find("ReduceSum", Kind::kF)->output(0);
  ExpectRefused("weight of the loss");
}

TEST_F(VerifyTrainingTest, BackwardNodeWithoutOrigin) {
  Find("ReluGrad", Kind::kI)->origin = nullptr;
  ExpectRefused("of kind I has no forward node as origin");
}

TEST_F(VerifyTrainingTest, OriginThatIsNotForward) {
  Find("FusedMatMul", Kind::kW)->origin = Find("ReluGrad", Kind::kI);
  ExpectRefused("has no forward node as origin");
}

TEST_F(VerifyTrainingTest, UpdateBeforeTheEndOfTheBackwardPass) {
  m_.graph().Move(Find("SquaredNorm", Kind::kU), Find("Accumulate", Kind::kW));
  ExpectRefused("comes after one of kind U");
}

TEST_F(VerifyTrainingTest, ForwardUsesGradient) {
  Find("MatMul", Kind::kF)->SetInput(1, Find("Add", Kind::kU)->output(0));
  ExpectRefused("of kind F uses");
}

TEST_F(VerifyTrainingTest, InputGradientNeedsWeightGradient) {
  Find("ReluGrad", Kind::kI)->SetInput(0, Find("FusedMatMul", Kind::kW)->output(0));
  ExpectRefused("of kind I uses");
}

TEST_F(VerifyTrainingTest, ParameterThatIsNone) {
  weight().parameter = m_.graph().inputs()[0];
  ExpectRefused("is trained but not a float parameter");
}

TEST_F(VerifyTrainingTest, ParameterTwice) {
  training().parameters.push_back(weight());
  ExpectRefused("is listed twice");
}

TEST_F(VerifyTrainingTest, ParameterWithoutGradient) {
  weight().accumulated.clear();
  ExpectRefused("has no gradient");
}

TEST_F(VerifyTrainingTest, GradientThatIsNotAccumulated) {
  weight().accumulated[0] = weight().accumulated[0]->producer()->input(1);
  ExpectRefused("is not accumulated");
}

TEST_F(VerifyTrainingTest, GradientOfAnotherShape) {
  weight().accumulated[1]->type.shape = {9};
  ExpectRefused("its parameter p is float64[3,3]");
}

TEST_F(VerifyTrainingTest, GradientOfAnUseForgotten) {
  weight().accumulated.pop_back();
  ExpectRefused("belongs to no trained parameter");
}

TEST_F(VerifyTrainingTest, GradientOfAnUseTwice) {
  weight().accumulated[1] = weight().accumulated[0];
  ExpectRefused("is listed twice");
}

TEST_F(VerifyTrainingTest, NoUpdate) {
  weight().updates.clear();
  ExpectRefused("has 0 updates");
}

TEST_F(VerifyTrainingTest, UpdateOfAnotherParameter) {
  std::swap(weight().updates, training().parameters[1].updates);
  ExpectRefused("is not an update of parameter p");
}

TEST_F(VerifyTrainingTest, UpdateWithAnotherIndex) {
  weight().updates[0]->attributes.Set("parameter", int64_t{1});
  ExpectRefused("(number 0)");
}

TEST_F(VerifyTrainingTest, StateOfAnotherParameter) {
  std::swap(weight().states, training().parameters[1].states);
  ExpectRefused("is not a state of node");
}

TEST_F(VerifyTrainingTest, NoGradientScale) {
  training().gradient_scales.clear();
  ExpectRefused("there is no GradientScale");
}

}  // namespace
}  // namespace pipec
