// Every gradient rule against central differences in float64, over shapes, broadcasts and attributes.
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gradient_cases.h"
#include "passes/gradients/gradient.h"
#include "passes/passes.h"
#include "small_model.h"
#include "tests/support/interpreter.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;
using Case = GradientCase;

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return absl::StrCat(info.param.op, "_", info.param.what);
}

class GradientRuleTest : public testing::TestWithParam<Case> {};

TEST_P(GradientRuleTest, EqualsCentralDifferences) {
  SmallModel m;
  // Every output enters the loss linearly with weights of its own, so that no sum hides a wrong element.
  Value* loss = nullptr;
  for (Value* output : GetParam().build(m)) {
    Value* weighted = m.Op("Mul", {output, m.Random({output->type.shape.begin(), output->type.shape.end()})});
    Value* sum = m.Op("ReduceSum", {weighted}, {{"keepdims", int64_t{0}}});
    loss = loss ? m.Op("Add", {loss, sum}) : sum;
  }
  m.graph().outputs = {loss};
  const PassContext context;
  auto built = BuildLoss(m.module(), context);
  ASSERT_TRUE(built.ok()) << built.status();
  built = BuildGradients(m.module(), context);
  ASSERT_TRUE(built.ok()) << built.status();

  auto made = Interpreter::Make(m.graph());
  ASSERT_TRUE(made.ok()) << made.status();
  Interpreter& interpreter = **made;
  ASSERT_EQ(interpreter.Forward(), absl::OkStatus());
  ASSERT_EQ(interpreter.Backward(), absl::OkStatus());
  const Training& training = m.module().training;
  int parameters = 0;
  for (const Value* value : m.graph().Values()) parameters += value->kind() == ValueKind::kParameter;
  ASSERT_EQ(training.parameters.size(), parameters);

  const double* loss_sum = interpreter.Data<double>(training.loss_sum);
  const double h = GetParam().step;
  for (const TrainedParameter& trained : training.parameters) {
    double* x = interpreter.Data<double>(trained.parameter);
    for (int64_t i = 0; i < trained.parameter->type.elements(); ++i) {
      double gradient = 0;
      for (const Value* use : trained.accumulated) gradient += interpreter.Data<double>(use)[i];
      const double at = x[i];
      x[i] = at + h;
      ASSERT_EQ(interpreter.Forward(), absl::OkStatus());
      const double above = *loss_sum;
      x[i] = at - h;
      ASSERT_EQ(interpreter.Forward(), absl::OkStatus());
      const double below = *loss_sum;
      x[i] = at;
      const double difference = (above - below) / (2 * h);
      EXPECT_NEAR(gradient, difference, 1e-6 * std::max(1.0, std::abs(difference)))
          << trained.parameter->name() << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, GradientRuleTest, testing::ValuesIn(AllGradientCases()), NameOf);

TEST(GradientRulesTest, EveryRuleIsTested) {
  std::set<std::pair<absl::string_view, absl::string_view>> tested, registered;
  for (const Case& c : AllGradientCases()) tested.emplace(c.op, c.domain);
  for (const GradientRuleEntry& entry : AllGradientRules()) registered.emplace(entry.op, entry.domain);
  EXPECT_EQ(tested, registered);
}

// The gradient of the only parameter of a loss that `build` makes of it.
std::vector<double> GradientOf(std::vector<int64_t> shape, const std::vector<double>& contents,
                               Value* (*build)(SmallModel& m, Value* x)) {
  SmallModel m;
  Value* y = build(m, m.ParameterOf(std::move(shape), contents));
  m.graph().outputs = {m.Op("ReduceSum", {y}, {{"keepdims", int64_t{0}}})};
  const PassContext context;
  EXPECT_TRUE(BuildLoss(m.module(), context).ok());
  EXPECT_TRUE(BuildGradients(m.module(), context).ok());
  auto made = Interpreter::Make(m.graph());
  EXPECT_TRUE(made.ok()) << made.status();
  Interpreter& interpreter = **made;
  EXPECT_EQ(interpreter.Forward(), absl::OkStatus());
  EXPECT_EQ(interpreter.Backward(), absl::OkStatus());
  std::vector<double> sum(contents.size(), 0);
  for (const Value* use : m.module().training.parameters.at(0).accumulated) {
    for (int i = 0; i < sum.size(); ++i) sum[i] += interpreter.Data<double>(use)[i];
  }
  return sum;
}

// Where a function has a corner, the rule is PyTorch's.
TEST(GradientRulesTest, CornersFollowPyTorch) {
  using testing::ElementsAre;
  using M = SmallModel;
  EXPECT_THAT(GradientOf({3}, {-1, 0, 2}, [](M& m, Value* x) { return m.Op("Relu", {x}); }),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(GradientOf({3}, {-1, 0, 2}, [](M& m, Value* x) { return m.Op("Abs", {x}); }),
              ElementsAre(-1, 0, 1));
  EXPECT_THAT(GradientOf({4}, {1, 2, 2, 2}, [](M& m, Value* x) { return m.Op("ReduceMax", {x}); }),
              ElementsAre(0, 1. / 3, 1. / 3, 1. / 3));
  EXPECT_THAT(GradientOf({3}, {-1, 0, 2},
                         [](M& m, Value* x) {
                           return m.Op("Max", {x, m.Constant({3}, {0, 0, 0})});
                         }),
              ElementsAre(0, 0.5, 1));
  EXPECT_THAT(GradientOf({3}, {-1, 0, 2},
                         [](M& m, Value* x) {
                           return m.Op("Min", {x, m.Constant({3}, {0, 0, 0})});
                         }),
              ElementsAre(1, 0.5, 0));
  EXPECT_THAT(GradientOf({2}, {0, 2},
                         [](M& m, Value* x) {
                           return m.Op("Pow", {x, m.Constant({2}, {0, 0})});
                         }),
              ElementsAre(0, 0));
  EXPECT_THAT(GradientOf({2}, {0, 2},
                         [](M& m, Value* e) {
                           return m.Op("Pow", {m.Constant({2}, {0, 1}), e});
                         }),
              ElementsAre(0, 0));
  EXPECT_THAT(GradientOf({1, 1, 4}, {1, 2, 2, 2},
                         [](M& m, Value* x) {
                           return m.Op("MaxPool", {x}, {{"kernel_shape", Ints{4}}});
                         }),
              ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(GradientOf({1, 1, 4}, {1, 2, 2, 2}, [](M& m, Value* x) { return m.Op("GlobalMaxPool", {x}); }),
              ElementsAre(0, 1, 0, 0));
}

}  // namespace
}  // namespace pipec
