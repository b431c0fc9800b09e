// If with a known condition, Loop and Scan with a known course: what they leave in the graph, and what is
// refused.
#include <gmock/gmock.h>

#include <cstring>

#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Module> ImportFolding(const std::string& graph, int opset = 21) {
  return Import(Text(graph, opset), {.evaluate = Evaluate});
}

std::string Refusal(const std::string& graph, int opset = 21) {
  auto module = TryImport(Text(graph, opset), {.evaluate = Evaluate});
  return module.ok() ? "accepted" : std::string(module.status().message());
}

std::vector<std::string> Ops(const Module& module) {
  std::vector<std::string> ops;
  for (const Node* node : module.graph.Nodes()) ops.push_back(node->op());
  return ops;
}

std::string OutputType(const Module& module, int k = 0) { return ToString(module.graph.outputs.at(k)->type); }

constexpr char kBranches[] = R"(<
    then_branch = yes () => (float[2] t) { t = Relu(x) },
    else_branch = no () => (float[2] e) { u = Neg(x) e = Exp(u) }>)";

TEST(If, OnlyTheBranchThatIsTakenIsThere) {
  auto module = ImportFolding(std::string("g (float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) ") +
                              kBranches + "}");
  EXPECT_THAT(Ops(*module), ElementsAre("Relu"));
  EXPECT_EQ(module->graph.outputs[0]->name(), "y");
  // The condition is what shapes say, as exporters write it; one element of shape [1] is a condition too.
  module = ImportFolding(std::string("g (float[2] x) => (float[2] y) <int64[1] three = {3}> { s = Shape(x) "
                                     "c = Equal(s, three) [pick] y = If(c) ") +
                         kBranches + "}");
  EXPECT_THAT(Ops(*module), ElementsAre("Neg", "Exp"));
  EXPECT_NE(module->graph.FindValue("pick/u"), nullptr) << Print(*module);
}

TEST(If, WhatIsNotTakenMayBeAnything) {
  auto module = ImportFolding(R"(g (float[2] x) => (float[2] y) <bool c = {0}> {
      y = If(c) <then_branch = yes () => (t) { t = NoSuchOp(x) }, else_branch = no () => (e) { e = Relu(x) }>
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Relu"));
}

TEST(If, BranchesReturnOuterValuesAndInitializersOfTheirOwn) {
  auto module =
      ImportFolding(R"(g (float[2] x, float[2] z) => (float[2] y, float[2] w, float[2] h) <bool c = {1}> {
      h = Relu(x)
      y, w = If(c) <
        then_branch = yes () => (float[2] h, float[2] own) <float[2] own = {3, 4}> {},
        else_branch = no () => (float[2] z, float[2] z) {}>
    })");
  EXPECT_EQ(module->graph.outputs[2]->name(), "h");
  EXPECT_EQ(module->graph.outputs[0]->producer()->input(0)->name(), "h");
  const Value* own = module->graph.FindValue("own");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->kind(), ValueKind::kParameter);
  EXPECT_EQ(module->graph.outputs[1]->producer()->input(0), own);
}

TEST(If, NestedWithShadowedNames) {
  // ONNX forbids a subgraph to define a name of the graph around it; files do. The inner one is meant.
  auto module = ImportFolding(R"(g (float[2] x) => (float[2] y) <bool c = {1}> {
      y = If(c) <
        then_branch = yes () => (float[2] t) {
          x = Neg(x2)
          x2 = Abs(y0)
          t = If(c) <then_branch = inner () => (float[2] r) { r = Exp(x) }, else_branch = other () => (x) {}>
        },
        else_branch = no () => (x) {}>
      y0 = Sin(x)
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Sin", "Abs", "Neg", "Exp"));
}

TEST(If, AnUnknownConditionIsRefusedByName) {
  EXPECT_THAT(
      Refusal(std::string("g (float[2] x, bool c) => (float[2] y) { [pick] y = If(c) ") + kBranches + "}",
              17),
      AllOf(HasSubstr("node 'pick' (If), opset 17"), HasSubstr("condition, 'c', is not known")));
  EXPECT_THAT(Refusal(std::string("g (float[2] x) => (float[2] y) <bool[2] c = {1, 1}> { y = If(c) ") +
                      kBranches + "}"),
              HasSubstr("condition must be one number"));
  EXPECT_THAT(Refusal("g (float[2] x) => (y) <bool c = {1}> { y = If(c) <then_branch = a () => (q) {}, "
                      "else_branch = b () => (x) {}> }"),
              HasSubstr("'q'"));
}

constexpr char kSums[] = R"(
    [loop] last, all = Loop(trips, go, start) <body = step (int64 i, bool c, float[2] s) =>
    (bool d, float[2] t, float[2] row) {
      d = Identity(c)
      f = Cast<to = 1>(i)
      t = Add(s, f)
      row = Mul(t, x)
    }>)";

TEST(Loop, IsUnrolledAndItsScanOutputsAreStacked) {
  auto module = ImportFolding(std::string("g (float[2] x, float[2] start) => (float[2] last, float[3,2] all) "
                                          "<int64 trips = {3}, bool go = {1}> {") +
                              kSums + "}");
  EXPECT_THAT(Ops(*module), ElementsAre("Add", "Mul", "Add", "Mul", "Add", "Mul", "Unsqueeze", "Unsqueeze",
                                        "Unsqueeze", "Concat"));
  EXPECT_NE(module->graph.FindValue("loop/1/t"), nullptr) << Print(*module);
  EXPECT_EQ(module->graph.outputs[0]->name(), "last");
  EXPECT_EQ(OutputType(*module, 1), "float32[3,2]");
}

TEST(Loop, TripCountAndConditionOfEveryKind) {
  const auto adds = [](const std::string& trips, const std::string& go, const std::string& next) {
    auto module = ImportFolding(
        "g (float[2] x) => (float[2] y) <int64[1] five = {5}, bool true = {1}, bool false = {0}, "
        "int64 three = {3}> { y = Loop(" +
        trips + ", " + go + ", x) <body = step (int64 i, bool c, float[2] s) => (bool d, t) { d = " + next +
        " t = Add(s, x) }> }");
    const std::vector<std::string> ops = Ops(*module);
    return std::count(ops.begin(), ops.end(), "Add");
  };
  EXPECT_EQ(adds("five", "", "Identity(c)"), 5);
  EXPECT_EQ(adds("five", "true", "Identity(c)"), 5);
  EXPECT_EQ(adds("five", "true", "Less(i, three)"), 4);
  EXPECT_EQ(adds("", "true", "Less(i, three)"), 4);
  // Without a condition operand the body's is not looked at.
  EXPECT_EQ(adds("five", "", "Identity(false)"), 5);
  EXPECT_EQ(adds("five", "false", "Identity(c)"), 0);
}

TEST(Loop, WithoutIterationsHasTheDeclaredType) {
  const std::string head =
      "g (float[2] x, float[2] start) => (last, all) <int64 trips = {0}, bool go = {1}> {";
  auto module = ImportFolding(head + kSums + "}");
  EXPECT_EQ(OutputType(*module, 1), "float32[0,2]");
  EXPECT_THAT(
      Refusal(
          "g (float[2] x) => (b) <int64 m = {0}> { a, b = Loop(m, , x) <body = step (int64 i, bool c, s) => "
          "(c, s, r) { r = Add(x, x) }> }"),
      HasSubstr("does not declare the type of 'r'"));
}

TEST(Loop, CarriesChangingShapesAndCapturesFromSeveralLevels) {
  auto module = ImportFolding(R"(g (float[1,2] x) => (float[4,2] y) <int64 m = {2}, bool yes = {1}> {
      y = Loop(m, , x) <body = outer (int64 i, bool c, s) => (bool c, t) {
        t = If(yes) <then_branch = a () => (r) { r = Concat<axis = 0>(s, s) }, else_branch = b () => (x) {}>
      }>
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Concat", "Concat"));
}

TEST(Loop, WeightsOfTheBodyAreOneParameter) {
  auto module = ImportFolding(R"(g (float[1,2] x) => (float[1,2] y) <int64 m = {3}> {
      y = Loop(m, , x) <body = step (int64 i, bool c, float[1,2] s) => (bool c, float[1,2] t)
        <float[2,2] w = {1, 2, 3, 4}> { t = MatMul(s, w) }>
    })");
  ASSERT_NE(module->graph.FindValue("w"), nullptr);
  EXPECT_EQ(module->graph.FindValue("w")->uses().size(), 3);
  EXPECT_EQ(module->graph.FindValue("w_1"), nullptr);
}

TEST(Loop, WhatDependsOnDataIsRefusedByName) {
  const auto loop = [](const std::string& operands, const std::string& next) {
    return "g (float[2] x, int64 n, bool b) => (float[2] y) <int64 five = {5}, bool yes = {1}> { [run] y = "
           "Loop(" +
           operands + ", x) <body = step (int64 i, bool c, float[2] s) => (bool d, t) { t = Add(s, x) " +
           next + " }> }";
  };
  EXPECT_THAT(Refusal(loop("n, ", "d = Identity(c)")),
              AllOf(HasSubstr("node 'run' (Loop), opset 21"), HasSubstr("trip count, 'n'")));
  EXPECT_THAT(Refusal(loop("five, b", "d = Identity(c)")), HasSubstr("condition, 'b'"));
  EXPECT_THAT(Refusal(loop("five, yes", "m = ReduceMax<keepdims = 0>(t) z = Sub(m, m) d = Greater(z, m)")),
              HasSubstr("condition after iteration 0"));
  EXPECT_THAT(Refusal(loop(", ", "d = Identity(c)")), HasSubstr("never ends"));
  EXPECT_THAT(Refusal("g (float[2] x) => (y) <int64 m = {2}> { y = Loop(m, , x) <body = b (int64 i, bool c) "
                      "=> (c) {}> }"),
              HasSubstr("carries 1 value and"));
}

TEST(Loop, OneThatIsTooLongNamesItself) {
  const std::string refusal = Refusal(R"(g (float[2] x) => (float[2] y) <int64 m = {1000000000}> {
      [long] y = Loop(m, , x) <body = step (int64 i, bool c, float[2] s) => (bool c, t) { a = Sin(s) t = Add(a, x) }>
    })");
  EXPECT_THAT(refusal, AllOf(HasSubstr("node 'long' (Loop)"), HasSubstr("more than 200000 nodes")));
  // Also where nothing is left of an iteration.
  EXPECT_THAT(Refusal(R"(g (float[2] x) => (float[2] y) <int64 m = {1000000000}> {
      [long] y = Loop(m, , x) <body = step (int64 i, bool c, float[2] s) => (bool c, s) {}>
    })"),
              HasSubstr("node 'long' (Loop)"));
}

TEST(Scan, AxesDirectionsStatesAndSeveralOutputs) {
  auto module = ImportFolding(R"(g (float[2] s0, float[3] q0, float[2,4] x, float[4,3] z)
      => (float[2] s, float[3] q, float[2,4] a, float[4,3] b) {
      [scan] s, q, a, b = Scan<num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
                        scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
                        body = step (float[2] s_in, float[3] q_in, float[2] xi, float[3] zi)
                          => (float[2] s_out, float[3] q_out, float[2] ai, float[3] bi) {
          s_out = Add(s_in, xi)
          q_out = Mul(q_in, zi)
          ai = Identity(s_out)
          bi = Neg(zi)
        }>(s0, q0, x, z)
    })");
  EXPECT_EQ(OutputType(*module, 2), "float32[2,4]");
  EXPECT_EQ(OutputType(*module, 3), "float32[4,3]");
  // Backwards: the first iteration meets the last row of z, and its result is the last column of a.
  const Node* first = module->graph.FindValue("scan/0/bi")->producer();
  EXPECT_EQ(first->input(0)->producer()->input(0)->output_index(), 3);
  const Node* columns = module->graph.outputs[2]->producer();
  ASSERT_EQ(columns->op(), "Concat");
  EXPECT_EQ(columns->attributes.Int("axis"), 1);
  EXPECT_EQ(columns->input(3)->producer()->input(0),
            module->graph.FindValue("scan/0/s_out")->uses()[0].node->op() == "Identity"
                ? module->graph.FindValue("scan/0/ai")
                : module->graph.FindValue("scan/0/s_out"));
}

TEST(Scan, OfOpset8RunsEverySample) {
  const std::string body = R"(<num_scan_inputs = 1, body = step (float[2] s_in, float[2] xi)
      => (float[2] s_out, float[2] row) { s_out = Add(s_in, xi) row = Identity(s_out) }>)";
  auto module =
      ImportFolding("g (float[3,2] s0, float[3,4,2] x) => (float[3,2] s, float[3,4,2] a) { s, a = Scan" +
                        body + "( , s0, x) }",
                    8);
  EXPECT_EQ(OutputType(*module, 0), "float32[3,2]");
  EXPECT_EQ(OutputType(*module, 1), "float32[3,4,2]");
  EXPECT_THAT(
      Refusal("g (int64[3] n, float[3,2] s0, float[3,4,2] x) => (s, a) { s, a = Scan" + body + "(n, s0, x) }",
              8),
      HasSubstr("sequence_lens"));
}

TEST(Scan, WrongFormsAreRefused) {
  const std::string body =
      "body = step (float[2] s_in, float[2] xi) => (float[2] s_out, float[2] row) { s_out = Add(s_in, xi) "
      "row = Neg(xi) }";
  const auto scan = [&](const std::string& attributes) {
    return Refusal("g (float[2] s0, float[4,2] x) => (s, a) { s, a = Scan<" + attributes + ", " + body +
                   ">(s0, x) }");
  };
  EXPECT_THAT(scan("num_scan_inputs = 1, scan_input_axes = [2]"), HasSubstr("axis 2"));
  EXPECT_THAT(scan("num_scan_inputs = 1, scan_input_axes = [0, 0]"),
              HasSubstr("scan_input_axes has 2 entries"));
  EXPECT_THAT(scan("num_scan_inputs = 3"), HasSubstr("3 of them to scan"));
}

}  // namespace
}  // namespace pipec
