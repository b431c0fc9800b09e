// The structure that the training passes make: running sums, accumulators, kinds, updates, and what
// they refuse.
#include <string>
#include <vector>

#include "build_training.h"
#include "gmock/gmock.h"

namespace pipec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "op<origin kind" of every node that is not forward, in order.
std::vector<std::string> Backward(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node* node : graph.Nodes()) {
    if (node->kind == Kind::kF || node->kind == Kind::kU) continue;
    lines.push_back(
        absl::StrCat(node->op(), "<", node->origin->name(), " ", std::string(1, Letter(node->kind))));
  }
  return lines;
}

std::vector<std::string> TrainedNames(const Module& module) {
  std::vector<std::string> names;
  for (const TrainedParameter& trained : module.training.parameters)
    names.push_back(trained.parameter->name());
  return names;
}

// Two layers; the second has a bias. The first needs no gradient of x.
TEST(TrainingPassesTest, SplitsIntoWhatOtherStagesNeedAndWhatCanWait) {
  SmallModel m;
  Value* x = m.Input({2, 3});
  Value* hidden = m.Op("Relu", {m.Op("MatMul", {x, m.Parameter({3, 4})})});
  MakeLoss(m, m.Op("Add", {m.Op("MatMul", {hidden, m.Parameter({4, 5})}), m.Parameter({5})}));
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_THAT(Backward(m.graph()),
              ElementsAre("Expand<ReduceSum I", "ReduceSum<Add W", "Accumulate<Add W",
                          "FusedMatMul<MatMul_1 I", "FusedMatMul<MatMul_1 W", "Accumulate<MatMul_1 W",
                          "ReluGrad<Relu I", "FusedMatMul<MatMul W", "Accumulate<MatMul W"));
}

// The product's two gradients of parameters are one node, which can wait; that of its operand is another.
TEST(TrainingPassesTest, AWeightAndItsBiasHaveOneGradientNode) {
  SmallModel m;
  Value* hidden = m.Op("Mul", {m.Input({2, 3}), m.Parameter({3})});
  MakeLoss(m, m.Op("Gemm", {hidden, m.Parameter({3, 5}), m.Parameter({5})}));
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_THAT(
      Backward(m.graph()),
      ElementsAre("Expand<ReduceSum I", "FusedMatMul<Gemm I", "MatMulWeightGrad<Gemm W", "Accumulate<Gemm W",
                  "Accumulate<Gemm W", "Mul<Mul W", "ReduceSum<Mul W", "Accumulate<Mul W"));
}

// What is computed from parameters alone is no activation: its gradient can wait too.
TEST(TrainingPassesTest, GradientOfATransposedWeightIsW) {
  SmallModel m;
  Value* transposed = m.Op("Transpose", {m.Parameter({4, 3})});
  MakeLoss(m, m.Op("MatMul", {m.Input({2, 3}), transposed}));
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_THAT(Backward(m.graph()), ElementsAre("Expand<ReduceSum I", "FusedMatMul<MatMul W",
                                               "Transpose<Transpose W", "Accumulate<Transpose W"));
}

// h feeds A, B and C in this order: its gradient is (C + B) + A, and each Add belongs to the consumer it
// adds.
TEST(TrainingPassesTest, GradientIsARunningSumInReverseConsumerOrder) {
  SmallModel m;
  Value* h = m.Op("Mul", {m.Input({3}), m.Parameter({3})});
  Value* a = m.Op("Tanh", {h});
  Value* b = m.Op("Sigmoid", {h});
  Value* c = m.Op("Exp", {h});
  MakeLoss(m, m.Op("Sum", {a, b, c}));
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_THAT(Backward(m.graph()),
              ElementsAre("Expand<ReduceSum I", "Mul<Exp I", "SigmoidGrad<Sigmoid I", "Add<Sigmoid I",
                          "TanhGrad<Tanh I", "Add<Tanh I", "Mul<Mul W", "Accumulate<Mul W"));
  const Node* last = m.graph().Nodes().back();
  for (last = m.graph().first_node(); !(last->Is("Add") && last->origin->Is("Tanh"));) last = last->next();
  EXPECT_EQ(last->input(0)->producer()->origin->op(), "Sigmoid");
  EXPECT_EQ(last->input(0)->producer()->input(0)->producer()->origin->op(), "Exp");
}

TEST(TrainingPassesTest, EveryUseHasItsOwnAccumulatorAndTheUpdateAddsThemInUseOrder) {
  SmallModel m;
  Value* w = m.Parameter({3, 3});
  Value* y = m.Op("MatMul", {m.Op("MatMul", {m.Op("MatMul", {m.Input({2, 3}), w}), w}), w});
  MakeLoss(m, y);
  CompileOptions options;
  options.optimizer = "momentum";
  ASSERT_TRUE(BuildTraining(m.module(), options).ok());
  const TrainedParameter& trained = m.module().training.parameters.at(0);
  std::vector<std::string> origins;
  for (const Value* use : trained.accumulated) origins.push_back(use->producer()->origin->name());
  EXPECT_THAT(origins, ElementsAre("MatMul", "MatMul_1", "MatMul_2"));

  const Node* update = trained.updates.at(0);
  EXPECT_TRUE(update->Is("Momentum", kPipecDomain));
  EXPECT_EQ(update->origin->name(), "MatMul");
  ASSERT_EQ(trained.states.at(0).size(), 1);
  EXPECT_EQ(trained.states[0][0]->name(), w->name() + ".momentum_buffer");
  const Node* outer = update->input(1)->producer();
  ASSERT_TRUE(outer->Is("Add"));
  EXPECT_EQ(outer->input(1), trained.accumulated[2]);
  EXPECT_EQ(outer->input(0)->producer()->input(0), trained.accumulated[0]);
  EXPECT_EQ(outer->input(0)->producer()->input(1), trained.accumulated[1]);
  // The norm counts the parameter once.
  EXPECT_EQ(m.module().training.gradient_scales.at(0)->inputs().size(), 3);
  EXPECT_TRUE(m.module().training.gradient_scales[0]->input(2)->producer()->input(0) == update->input(1));
}

TEST(TrainingPassesTest, ManyUsesShareEightAccumulatorsAndTheReportSaysSo) {
  SmallModel m;
  Value* w = m.Parameter({3});
  Value* y = m.Input({3});
  for (int i = 0; i < 20; ++i) y = m.Op("Mul", {y, w});
  MakeLoss(m, y);
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_EQ(m.module().training.parameters.at(0).accumulated.size(), 8);
  EXPECT_THAT(m.module().notes, testing::Contains(HasSubstr("20 times")));
  // A sum over uses may have to travel between stages, so what is handed to another use is none of the work
  // that can wait.
  for (const Node* node : m.graph().Nodes()) {
    if (node->kind != Kind::kW) continue;
    for (const Use& use : node->output(0)->uses()) {
      EXPECT_TRUE(use.node->kind == Kind::kU || use.node->origin == node->origin) << node->name();
    }
  }
}

TEST(TrainingPassesTest, TrainAndFreezeChooseParametersAndNothingIsComputedForTheOthers) {
  SmallModel m;
  Value* names[3];
  Value* y = m.Input({2, 3});
  for (int i = 0; i < 3; ++i) {
    names[i] = m.Parameter({3, 3});
    m.graph().Rename(names[i], absl::StrCat("layer.", i, ".weight"));
    y = m.Op("MatMul", {y, names[i]});
  }
  MakeLoss(m, y);
  CompileOptions options;
  options.train_regex = "layer\\.[12]";
  options.freeze_regex = "2\\.weight$";
  ASSERT_TRUE(BuildTraining(m.module(), options).ok());
  EXPECT_THAT(TrainedNames(m.module()), ElementsAre("layer.1.weight"));
  EXPECT_THAT(Backward(m.graph()), ElementsAre("Expand<ReduceSum I", "FusedMatMul<MatMul_2 I",
                                               "FusedMatMul<MatMul_1 W", "Accumulate<MatMul_1 W"));
}

TEST(TrainingPassesTest, RefusesBadRegexesAndAChoiceOfNothing) {
  for (const auto& [train, freeze, message] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"(", "", "'(' is no regular"}, {"", "[", "'[' is no regular"}, {"nothing", "", "no parameter to train"}}) {
    SmallModel m;
    MakeLoss(m, m.Op("Mul", {m.Input({3}), m.Parameter({3})}));
    CompileOptions options;
    options.train_regex = train;
    options.freeze_regex = freeze;
    const absl::Status status = BuildTraining(m.module(), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

// A value that is used only to make a mask passes no gradient on: what is behind it is not trained, without
// an error.
TEST(TrainingPassesTest, NoGradientFlowsThroughAMask) {
  SmallModel m;
  Value* x = m.Input({2, 3});
  Value* h = m.Op("MatMul", {x, m.Parameter({3, 4})});
  Value* g = m.Op("MatMul", {x, m.Parameter({3, 4})});
  Value* choice = m.Op("ArgMax", {g}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  Value* mask = m.Op("OneHot", {choice, m.Ints({}, {4}), m.Constant({2}, {0, 1})});
  MakeLoss(m, m.Op("Mul", {h, mask}));
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_THAT(TrainedNames(m.module()), ElementsAre("p"));
  EXPECT_THAT(Backward(m.graph()),
              ElementsAre("Expand<ReduceSum I", "Mul<Mul I", "FusedMatMul<MatMul W", "Accumulate<MatMul W"));
  EXPECT_THAT(m.module().notes,
              testing::Contains(HasSubstr("not trained, as the loss has no gradient in them: p_1")));
}

// Second derivatives have no rules.
TEST(TrainingPassesTest, MissingRuleIsRefusedOnThePathOfTheLossOnly) {
  SmallModel m;
  Value* x = m.Input({3});
  MakeLoss(m, m.Op("Mul", {x, m.Helper("ReluGrad", {x, m.Parameter({3})})}));
  const absl::Status status = BuildTraining(m.module());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(),
              HasSubstr("node 'ReluGrad' (ai.pipec::ReluGrad): there is no gradient rule for this op"));

  SmallModel side;  // of the input, and of a parameter on the way to another output
  Value* p = side.Parameter({3});
  x = side.Input({3});
  MakeLoss(side, side.Op("Mul", {side.Helper("ReluGrad", {x, x}), p}));
  side.graph().outputs.push_back(side.Helper("ReluGrad", {p, p}));
  EXPECT_TRUE(BuildTraining(side.module()).ok());
  EXPECT_THAT(side.module().notes, testing::Contains(HasSubstr("outputs ReluGrad_1")));
}

TEST(TrainingPassesTest, ExporterLessStatisticsOfLayerNormalizationAreAdded) {
  SmallModel m;
  Value* y = m.Op("LayerNormalization", {m.Input({2, 4}), m.Parameter({4}), m.Parameter({4})});
  MakeLoss(m, y);
  ASSERT_TRUE(BuildTraining(m.module()).ok());
  EXPECT_EQ(y->producer()->outputs().size(), 3);
}

TEST(TrainingPassesTest, EveryOptimizerHasPyTorchsStates) {
  const std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> expected = {
      {"sgd", "Sgd", {}},
      {"momentum", "Momentum", {"p.momentum_buffer"}},
      {"nesterov", "Momentum", {"p.momentum_buffer"}},
      {"adam", "Adam", {"p.exp_avg", "p.exp_avg_sq"}},
      {"adamw", "Adam", {"p.exp_avg", "p.exp_avg_sq"}},
      {"adagrad", "Adagrad", {"p.sum"}},
  };
  for (const auto& [name, op, states] : expected) {
    SmallModel m;
    MakeLoss(m, m.Op("Mul", {m.Input({3}), m.Parameter({3})}));
    CompileOptions options;
    options.optimizer = name;
    ASSERT_TRUE(BuildTraining(m.module(), options).ok());
    const TrainedParameter& trained = m.module().training.parameters.at(0);
    EXPECT_EQ(trained.updates.at(0)->op(), op);
    EXPECT_EQ(trained.updates[0]->attributes.Int("nesterov"), name == "nesterov");
    EXPECT_EQ(trained.updates[0]->attributes.Int("decoupled"), name == "adamw");
    std::vector<std::string> names;
    for (const Value* state : trained.states.at(0)) names.push_back(state->name());
    EXPECT_EQ(names, states);
    NodeSpec spec{.op = op, .domain = kPipecDomain, .attributes = trained.updates[0]->attributes};
    spec.inputs.assign(trained.updates[0]->inputs().begin(), trained.updates[0]->inputs().end());
    EXPECT_TRUE(InferTypes(spec, static_cast<int>(states.size()) + 1).ok());
  }
  SmallModel m;
  MakeLoss(m, m.Op("Mul", {m.Input({3}), m.Parameter({3})}));
  CompileOptions options;
  options.optimizer = "adan";
  EXPECT_THAT(BuildTraining(m.module(), options).message(), HasSubstr("there are sgd, momentum"));
}

}  // namespace
}  // namespace pipec
