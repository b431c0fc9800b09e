// What cannot be supported refuses those who need it, with the first cause, and nobody else.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Refusal(const std::string& text, ImportOptions options = {.evaluate = Evaluate}) {
  auto module = TryImport(text, std::move(options));
  return module.ok() ? "accepted" : std::string(module.status().message());
}

TEST(Refused, WhatNobodyNeedsIsNoMatter) {
  auto module =
      Import(Text("g (float[2] x) => (float[2] y) { [where] i = NonZero(x) j = Add(i, i) y = Relu(x) }"));
  EXPECT_EQ(module->graph.num_nodes(), 1);
  EXPECT_TRUE(module->refused_outputs.empty());
}

TEST(Refused, HelperOpsAreOurs) {
  for (const char* node : {"ai.pipec.FusedMatMul<accumulate = 1>(x, x, s)", "ai.pipec.Accumulate(s, x)",
                           "ai.pipec.ReluGrad(x, s)", "ai.pipec.Message(x)"}) {
    for (const bool infers : {true, false}) {
      const std::string graph =
          absl::StrCat("g (float[2,2] x, float[2,2] s) => (float[2,2] y) { [own] y = ", node, " }");
      EXPECT_THAT(Refusal(Text(graph), {.infers = infers, .evaluate = Evaluate}),
                  AllOf(HasSubstr("node 'own'"), HasSubstr("domain 'ai.pipec' is of pipec's own ops")));
    }
  }
  // Emitted models have their meaning in functions.
  EXPECT_THAT(Import("<ir_version: 10, opset_import: [\"\" : 21, \"ai.pipec\" : 1]>\n"
                     "g (float[2] x) => (float[2] y) { y = ai.pipec.Accumulate(x, x) }\n"
                     "<domain: \"ai.pipec\", opset_import: [\"\" : 21]> Accumulate (s, x) => (y) { y = Add(s, x) }")
                  ->graph.num_nodes(),
              1);
}

TEST(Refused, TheFirstCauseReachesTheOutput) {
  const std::string text =
      Text("g (float[2] x) => (y) { [where] i = NonZero(x) j = Add(i, i) [last] y = Neg(j) }", 13);
  EXPECT_THAT(Refusal(text),
              AllOf(HasSubstr("output 'y': node 'where' (NonZero), opset 13"), Not(HasSubstr("last"))));
  // With nothing else to learn from, training refuses as well.
  EXPECT_THAT(Refusal(text, {.drop_refused_outputs = true}), HasSubstr("node 'where' (NonZero), opset 13"));
}

TEST(Refused, TrainingLeavesSideOutputsOut) {
  const std::string text = Text(
      "g (float[2] x) => (float[2] a, int64[1,N] i, float[2] b) { [where] i = NonZero(x) a = Relu(x) b = "
      "Neg(x) }");
  EXPECT_THAT(Refusal(text), HasSubstr("output 'i': node 'where' (NonZero)"));
  auto module = Import(text, {.drop_refused_outputs = true});
  ASSERT_EQ(module->graph.outputs.size(), 2);
  EXPECT_EQ(module->graph.outputs[1]->name(), "b");
  ASSERT_EQ(module->refused_outputs.size(), 1);
  EXPECT_EQ(module->refused_outputs[0].name, "i");
  EXPECT_EQ(module->refused_outputs[0].position, 1);
  EXPECT_FALSE(module->refused_outputs[0].is_float);
  EXPECT_THAT(module->notes.back(), AllOf(HasSubstr("left out: output 'i'"), HasSubstr("NonZero")));
}

TEST(Refused, InsideFunctionsLoopsAndBranches) {
  const std::string function =
      "\n<opset_import: [\"\" : 21], domain: \"mine\">\n"
      "Both (v) => (good, bad) { good = Relu(v) [inner] bad = NonZero(v) }";
  const std::string head = "<ir_version: 10, opset_import: [\"\" : 21, \"mine\" : 1]>\n";
  Import(head + "g (float[2] x) => (float[2] y) { y, z = mine.Both(x) }" + function);
  EXPECT_THAT(Refusal(head + "g (float[2] x) => (z) { [call] y, z = mine.Both(x) }" + function),
              HasSubstr("node 'call/inner' (NonZero), opset 21"));
  const std::string loop = R"(<int64 m = {2}> { s, t = Loop(m, , x, x)
      <body = step (int64 i, bool c, float[2] p, float[2] q) => (bool c, float[2] u, v) {
        u = Add(p, p) [inner] v = NonZero(q) }> })";
  Import(Text("g (float[2] x) => (float[2] s)" + loop));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (t)" + loop)), HasSubstr("inner' (NonZero)"));
  // A condition that was refused refuses the If.
  EXPECT_THAT(
      Refusal(Text("g (float[2] x) => (y) { [where] n = NonZero(x) k = Size(n) z = Sub(k, k) c = Equal(k, z) "
                   "y = If(c) <then_branch = a () => (x) {}, else_branch = b () => (x) {}> }")),
      HasSubstr("node 'where' (NonZero)"));
}

TEST(Refused, SubgraphsThatAreAttributesOfFunctions) {
  EXPECT_THAT(
      Refusal(
          "<ir_version: 10, opset_import: [\"\" : 21, \"mine\" : 1]>\n"
          "g (float[2] x) => (z) { [call] z = mine.Apply<f = b (float[2] v) => (w) { w = Relu(v) }>(x) }\n"
          "<opset_import: [\"\" : 21], domain: \"mine\">\nApply<f> (v) => (w) { w = Relu(v) }"),
      AllOf(HasSubstr("node 'call' (mine::Apply)"), HasSubstr("attribute f")));
}

TEST(Refused, AWrongModelIsRefusedAtOnce) {
  EXPECT_THAT(Refusal(Text("g (float[2] x, float[3] z) => (float[2] y) { y = Relu(x) [bad] w = Add(x, z) }")),
              HasSubstr("node 'bad' (Add)"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (float[2] y) { y = Relu(x) [bad] w = NoSuchOp(x) }")),
              HasSubstr("unknown op NoSuchOp in domain 'ai.onnx', opset 21"));
}

TEST(Refused, OpsOfUnknownDomainsOnlyWhereTheyAreNeeded) {
  const std::string head = "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 3]>\n";
  Import(head + "g (float[2] x) => (float[2] y) { y = Relu(x) z = com.example.Odd(x) }");
  EXPECT_THAT(Refusal(head + "g (float[2] x) => (y) { [o] y = com.example.Odd(x) }"),
              HasSubstr("node 'o' (com.example::Odd), opset 3: unknown op Odd in domain 'com.example'"));
}

}  // namespace
}  // namespace pipec
