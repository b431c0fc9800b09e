// What the rules make, told apart into I and W: for every case of gradient_cases.h the first operand becomes an
// activation, the others stay weights.
#include <set>
#include <string>

#include "build_training.h"
#include "gmock/gmock.h"
#include "gradient_cases.h"

namespace pipec {
namespace {

using Work = std::multiset<std::string>;

// p, wherever it is used, becomes p + x with an input x of the model.
void MakeActivation(SmallModel& m, Value* p) {
  Graph& graph = m.graph();
  Value* x = graph.AddValue(ValueKind::kInput, "x", p->type);
  Node* add = graph.AddNode({.op = "Add", .inputs = {x, x}, .outputs = {p->type}}, graph.first_node());
  graph.ReplaceAllUses(p, add->output(0));
  add->SetInput(0, p);
}

// The ops of a case's backward pass that are I. `weights`: whether all parameters learn, or the activation's alone.
Work InputGradients(const GradientCase& c, bool weights) {
  SmallModel m;
  Value* loss = nullptr;
  for (Value* output : c.build(m)) {
    Value* weighted = m.Op("Mul", {output, m.Random({output->type.shape.begin(), output->type.shape.end()})});
    Value* sum = m.Op("ReduceSum", {weighted}, {{"keepdims", int64_t{0}}});
    loss = loss ? m.Op("Add", {loss, sum}) : sum;
  }
  m.graph().outputs = {loss};
  Value* first = nullptr;
  for (Value* value : m.graph().Values()) {
    if (!first && value->kind() == ValueKind::kParameter) first = value;
  }
  MakeActivation(m, first);
  CompileOptions options;
  if (!weights) options.train_regex = absl::StrCat("^", first->name(), "$");
  // Its verifier refuses an I that needs a W.
  EXPECT_EQ(BuildTraining(m.module(), options), absl::OkStatus());
  Work work;
  for (const Node* node : m.graph().Nodes()) {
    if (node->kind == Kind::kI) work.insert(node->op());
  }
  return work;
}

class GradientSplitTest : public testing::TestWithParam<GradientCase> {};

// So all that only the weights need is W and can wait.
TEST_P(GradientSplitTest, WeightsAddNothingToWhatAnActivationNeeds) {
  const Work needed = InputGradients(GetParam(), false);
  EXPECT_FALSE(needed.empty());
  EXPECT_EQ(InputGradients(GetParam(), true), needed);
}

INSTANTIATE_TEST_SUITE_P(Rules, GradientSplitTest, testing::ValuesIn(AllGradientCases()),
                         [](const auto& info) { return absl::StrCat(info.param.op, "_", info.param.what); });

}  // namespace
}  // namespace pipec
