// What only the run knows, in infer mode: conditions of If and Loop, and how many entries a result has.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"
#include "tests/unit/onnx/run_module.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Module> ImportInfer(const std::string& graph, int opset = 21) {
  return Import(Text(graph, opset), {.infers = true, .evaluate = Evaluate});
}

std::string Refusal(const std::string& graph, bool infers = true) {
  auto module = TryImport(Text(graph), {.infers = infers, .evaluate = Evaluate});
  return module.ok() ? "accepted" : std::string(module.status().message());
}

std::vector<std::string> Ops(const Module& module) {
  std::vector<std::string> ops;
  for (const Node* node : module.graph.Nodes()) ops.push_back(node->op());
  return ops;
}

// x is {0.25, 0.5}: the sum is below 1.
std::string Branches(const std::string& limit, const std::string& rest) {
  return absl::StrCat("g (float[2] x) => (float[2] y) <float limit = {", limit,
                      "}> { sum = ReduceSum<keepdims = 0>(x) ", "c = Less(sum, limit) [pick] y = If(c) ",
                      rest, " }");
}

TEST(If, BothBranchesAreThereAndOneIsTaken) {
  const std::string both =
      "<then_branch = yes () => (t) { t = Add(x, x) }, else_branch = no () => (e) { e = Neg(x) }>";
  auto module = ImportInfer(Branches("1", both));
  EXPECT_THAT(Ops(*module), ElementsAre("ReduceSum", "Less", "Add", "Neg", "Where"));
  EXPECT_THAT(RunModule(*module), ElementsAre(0.5, 1));
  EXPECT_THAT(RunModule(*ImportInfer(Branches("0.5", both))), ElementsAre(-0.25, -0.5));
  // In training it is refused as before: what is not taken would get a gradient.
  EXPECT_THAT(Refusal(Branches("1", both), false),
              AllOf(HasSubstr("node 'pick' (If)"), HasSubstr("condition, 'c', is not known")));
}

TEST(If, BranchesOfTwoTypesAreRefusedByName) {
  EXPECT_THAT(
      Refusal(
          "g (float[2] x, bool c) => (y) { [pick] y = If(c) <then_branch = yes () => (t) { t = Relu(x) }, "
          "else_branch = no () => (e) { e = ReduceSum<keepdims = 0>(x) }> }"),
      AllOf(HasSubstr("node 'pick' (If), opset 21"), HasSubstr("float32[2] or float32[]")));
  EXPECT_THAT(Refusal("g (float[2] x, float c) => (y) { y = If(c) <then_branch = yes () => (x) {}, "
                      "else_branch = no () => (x) {}> }"),
              HasSubstr("condition is float32[]"));
  // A branch that cannot be had is told by whoever needs its result.
  EXPECT_THAT(Refusal("g (float[2] x, bool c) => (y) { y = If(c) <then_branch = yes () => (t) { [odd] t = "
                      "Bernoulli<dtype = 8>(x) }, "
                      "else_branch = no () => (e) { e = Relu(x) }> }"),
              HasSubstr("node 'If/then/odd'"));
}

// Doubles x (0.25, 0.5) while its sum is below `limit`, at most `trips` times.
std::string Doubling(const std::string& trips, const std::string& limit, const std::string& outputs) {
  return absl::StrCat(
      "g (float[2] x) => (", outputs, ") <int64 trips = {", trips, "}, float limit = {", limit,
      "}> { sum = ReduceSum<keepdims = 0>(x) c0 = Less(sum, limit) [loop] last, all = Loop(trips, c0, x) "
      "<body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] row) "
      "{ t = Add(s, s) row = Identity(s) z = ReduceSum<keepdims = 0>(t) d = Less(z, limit) }> }");
}

TEST(Loop, EndsWhereTheRunSaysSo) {
  const auto last = [](const std::string& trips, const std::string& limit) {
    return RunModule(*ImportInfer(Doubling(trips, limit, "float[2] last")));
  };
  EXPECT_THAT(last("8", "0.5"), ElementsAre(0.25, 0.5));
  EXPECT_THAT(last("8", "1"), ElementsAre(0.5, 1));
  EXPECT_THAT(last("8", "10"), ElementsAre(4, 8));
  EXPECT_THAT(last("2", "10"), ElementsAre(1, 2));
  EXPECT_THAT(last("0", "10"), ElementsAre(0.25, 0.5));
}

TEST(Loop, ItsScanOutputsAreCounted) {
  auto module = ImportInfer(Doubling("4", "3", "float[n,2] all"));
  ASSERT_EQ(module->counted_outputs.size(), 1u) << Print(*module);
  EXPECT_EQ(module->counted_outputs[0].output, "all");
  EXPECT_EQ(module->counted_outputs[0].axis, 0);
  ASSERT_EQ(module->graph.outputs.size(), 2u);
  EXPECT_EQ(module->graph.outputs[1]->name(), "all.count");
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "float32[4,2]");
  const std::vector<float> rows = RunModule(*module);
  EXPECT_THAT(std::vector<float>(rows.begin(), rows.begin() + 4), ElementsAre(0.25, 0.5, 0.5, 1));
}

TEST(Loop, WithoutABoundIsRefusedByName) {
  EXPECT_THAT(Refusal("g (float[2] x, bool c) => (y) { [loop] y = Loop(, c, x) <body = step (int64 i, bool "
                      "c, float[2] s) => "
                      "(bool c, float[2] t) { t = Add(s, s) }> }"),
              AllOf(HasSubstr("node 'loop' (Loop), opset 21"), HasSubstr("no trip count")));
  EXPECT_THAT(Refusal("g (float[2] x, int64 n) => (y) { [loop] y = Loop(n, , x) <body = step (int64 i, bool "
                      "c, float[2] s) => "
                      "(bool c, float[2] t) { t = Add(s, s) }> }"),
              AllOf(HasSubstr("node 'loop' (Loop)"), HasSubstr("trip count, 'n', is not known")));
  EXPECT_THAT(Refusal(Doubling("9223372036854775807", "3", "float[2] last")),
              HasSubstr("more than the supported 65536"));
  EXPECT_THAT(Refusal("g (float[2] x, bool c) => (y) <int64 n = {3}> { [loop] y = Loop(n, c, x) <body = step "
                      "(int64 i, bool c, s) "
                      "=> (bool c, t) { t = Concat<axis = 0>(s, s) }> }"),
              AllOf(HasSubstr("node 'loop' (Loop)"), HasSubstr("float32[4] or float32[2]")));
}

constexpr char kMasked[] =
    "g (float[2,3] x) => (%) <float limit = {1}> { m = Less(x, limit) [which] i = NonZero(m) ";

std::string Masked(const std::string& outputs, const std::string& nodes) {
  std::string text = kMasked;
  text.replace(text.find('%'), 1, outputs);
  return text + nodes + " }";
}

TEST(Counted, FollowsTheAxis) {
  const auto axis_of = [](const std::string& nodes) {
    auto module = ImportInfer(Masked("y", nodes));
    return module->counted_outputs.empty() ? -1 : module->counted_outputs[0].axis;
  };
  EXPECT_EQ(axis_of("y = Identity(i)"), 1);
  EXPECT_EQ(axis_of("y = Transpose<perm = [1, 0]>(i)"), 0);
  EXPECT_EQ(axis_of("y = Cast<to = 1>(i)"), 1);
  EXPECT_EQ(axis_of("a = Constant<value_ints = [0, -1]>() y = Unsqueeze(i, a)"), 2);
  EXPECT_EQ(axis_of("a = Constant<value_ints = [-1]>() s = Constant<value_ints = [1]>() e = "
                    "Constant<value_ints = [2]>() "
                    "z = Constant<value_ints = [0]>() r = Slice(i, s, e, z) y = Squeeze(r, z)"),
            0);
  EXPECT_EQ(axis_of("s = Constant<value_ints = [2, 1, -1]>() y = Reshape(i, s)"), 2);
  EXPECT_EQ(axis_of("y = Concat<axis = 0>(i, i)"), 1);
  EXPECT_EQ(axis_of("a, y = Split<axis = 0, num_outputs = 2>(i)"), 1);
  EXPECT_EQ(axis_of("t = Transpose<perm = [1, 0]>(i) y = GatherND(x, t)"), 0);
  EXPECT_EQ(axis_of("y = Gather<axis = 1>(x, i)"), 2);
  EXPECT_EQ(axis_of("c = Cast<to = 1>(i) y = Mul(c, limit)"), 1);
  EXPECT_EQ(axis_of("c = Add(i, i) y = Mul(c, i)"), 1);
  EXPECT_EQ(axis_of("t = Transpose<perm = [1, 0]>(i) c = Cast<to = 1>(t) w = Constant<value = float[2,4] "
                    "{1, 2, 3, 4, 5, 6, 7, 8}>() y = MatMul(c, w)"),
            0);
}

TEST(Counted, OpsThatWouldSeeWhatIsBeyondAreRefused) {
  for (const char* node : {
           "[odd] y = ReduceSum(i)",
           "[odd] y = Shape(i)",
           "[odd] y = Concat<axis = 1>(i, i)",
           "f = Cast<to = 1>(i) [odd] y = Softmax<axis = 1>(f)",
           "f = Cast<to = 1>(i) [odd] y = Softmax(f)",
           "f = Cast<to = 1>(i) g = Transpose<perm = [1, 0]>(f) [odd] y = MatMul(f, g)",
           "s = Constant<value_ints = [2, 6]>() [odd] y = Reshape(i, s)",
           "s = Constant<value_ints = [-1]>() [odd] y = Reshape(i, s)",
           "z = Constant<value_int = 0>() [odd] y = Gather<axis = 1>(i, z)",
           "s = Constant<value_ints = [0]>() e = Constant<value_ints = [1]>() a = Constant<value_ints = "
           "[-1]>() "
           "[odd] y = Slice(i, s, e, a)",
           "n = Not(m) j = NonZero(n) [odd] y = Add(i, j)",
           "k = Constant<value_ints = [1, 2, 3, 4, 5, 6]>() [odd] y = Add(i, k)",
           "[odd] y = NonZero(i)",
           "[odd] y = SplitToSequence<axis = 1>(i)",
           "[odd] a, y = Split<axis = 1, num_outputs = 2>(i)",
       }) {
    EXPECT_THAT(Refusal(Masked("y", node)),
                AllOf(HasSubstr("node 'odd'"), HasSubstr("opset 21"), HasSubstr("at most 6")))
        << node;
  }
}

TEST(Counted, InTrainingOnlyWhatIsKnownHasASize) {
  EXPECT_THAT(Refusal(Masked("y", "y = Identity(i)"), false),
              AllOf(HasSubstr("node 'which' (NonZero)"), HasSubstr("depends on data")));
  auto module = Import(Text("g (float[2] x) => (int64[1,2] i, float[2,2] y) <int64[4] k = {0, 7, 0, -1}> { i "
                            "= NonZero(k) z = Constant<value_int = 0>() "
                            "j = Gather(i, z) y = Gather(w, j) w = Concat<axis = 0>(r, r, r, r) one = "
                            "Constant<value_ints = [0]>() r = Unsqueeze(x, one) }"),
                       {.evaluate = Evaluate});
  EXPECT_TRUE(module->counted_outputs.empty());
  ASSERT_EQ(module->graph.outputs.size(), 2u);
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "int64[1,2]");
}

TEST(Counted, SeveralMicrobatchesAreRefused) {
  auto module = TryImport(Text(Masked("y", "y = Identity(i)")),
                          {.microbatches = 2, .infers = true, .evaluate = Evaluate});
  EXPECT_THAT(std::string(module.status().message()),
              AllOf(HasSubstr("output 'y'"), HasSubstr("--microbatches=1")));
}

// Numbers computed from counted ones may be anything beyond the count; as indices they are made 0 there.
TEST(Counted, IndicesBeyondTheCountExist) {
  auto module = ImportInfer(
      "g (float[4] x) => (float[n] y) <float limit = {0.6}, int64 two = {2}, int64 z = {0}> { m = Less(x, "
      "limit) "
      "i = NonZero(m) r = Gather(i, z) j = Add(r, two) y = Gather(x, j) }");
  const std::vector<float> y = RunModule(*module);  // x[0 + 2], x[1 + 2]
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ(y[0], 0.75);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 0.25);
}

}  // namespace
}  // namespace pipec
