// Sequences and optionals whose length is known at import: nothing is left of them but their tensors.
#include <gmock/gmock.h>

#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Module> ImportFolding(const std::string& graph) {
  return Import(Text(graph), {.evaluate = Evaluate});
}

std::string Refusal(const std::string& graph) {
  auto module = TryImport(Text(graph), {.evaluate = Evaluate});
  return module.ok() ? "accepted" : std::string(module.status().message());
}

std::vector<std::string> Ops(const Module& module) {
  std::vector<std::string> ops;
  for (const Node* node : module.graph.Nodes()) ops.push_back(node->op());
  return ops;
}

constexpr char kPlaces[] = "<int64 zero = {0}, int64 one = {1}, int64 last = {-1}>";

TEST(Sequence, InsertEraseAtAndLength) {
  auto module = ImportFolding(std::string("g (float[2] a, float[2] b, float[2] c) => (float[2] y, int64 n)") +
                              kPlaces + R"({
      s0 = SequenceEmpty()
      s1 = SequenceInsert(s0, a)
      s2 = SequenceInsert(s1, b, zero)
      s3 = SequenceInsert(s2, c, last)
      s4 = SequenceErase(s3)
      x0 = SequenceAt(s4, zero)
      x1 = SequenceAt(s4, last)
      y = Sub(x0, x1)
      n = SequenceLength(s3)
    })");
  // s3 is b, c, a; s4 is b, c.
  EXPECT_EQ(module->graph.first_node()->input(0)->name(), "b");
  EXPECT_EQ(module->graph.first_node()->input(1)->name(), "c");
  ASSERT_EQ(module->graph.outputs[1]->kind(), ValueKind::kConstant);
  EXPECT_EQ((*module->graph.outputs[1]->data.bytes)[0], 3);
}

TEST(Sequence, SplitAndConcat) {
  auto module =
      ImportFolding(std::string("g (float[5,3] x) => (float[3,5,1] y, float[5,3] z, float[1,3] w)") + R"(
      <int64 two = {2}, int64[2] parts = {1, 4}, int64 zero = {0}> {
      columns = SplitToSequence<axis = -1>(x)
      y = ConcatFromSequence<axis = 0, new_axis = 1>(columns)
      chunks = SplitToSequence(x, two)
      z = ConcatFromSequence<axis = 0>(chunks)
      uneven = SplitToSequence(x, parts)
      w = SequenceAt(uneven, zero)
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Split", "Unsqueeze", "Unsqueeze", "Unsqueeze", "Concat", "Split",
                                        "Concat", "Split"));
  EXPECT_EQ(module->graph.outputs[2]->name(), "w");
  auto rows = ImportFolding(
      "g (float[2,3] x) => (float[3] y) <int64 i = {1}> { s = SplitToSequence<axis = 0, keepdims = 0>(x) y = "
      "SequenceAt(s, i) }");
  EXPECT_THAT(Ops(*rows), ElementsAre("Split", "Squeeze", "Squeeze"));
}

TEST(Sequence, CarriedThroughLoopIfAndFunctions) {
  auto module = ImportFolding(R"(g (float[2] x) => (float[3,2] y) <int64 m = {3}, bool yes = {1}> {
      empty = SequenceEmpty()
      rows, = Loop(m, , empty) <body = step (int64 i, bool c, seq(float[2]) s) => (bool c, seq(float[2]) t) {
        f = Cast<to = 1>(i)
        r = Mul(x, f)
        t = SequenceInsert(s, r)
      }>
      picked = If(yes) <then_branch = a () => (rows) {}, else_branch = b () => (e) { e = SequenceEmpty() }>
      same = Identity(picked)
      y = ConcatFromSequence<axis = 0, new_axis = 1>(same)
    })");
  EXPECT_THAT(Ops(*module),
              ElementsAre("Mul", "Mul", "Mul", "Unsqueeze", "Unsqueeze", "Unsqueeze", "Concat"));
  auto function = Import(
      "<ir_version: 10, opset_import: [\"\" : 21, \"mine\" : 1]>\n"
      "g (float[2] x, float[2] z) => (float[2] y) { s = SequenceConstruct(x, z) y = mine.Second(s) }\n"
      "<opset_import: [\"\" : 21], domain: \"mine\">\n"
      "Second (s) => (e) { p = Constant<value_int = 1>() e = SequenceAt(s, p) }",
      {.evaluate = Evaluate});
  EXPECT_EQ(function->graph.inputs()[1]->name(), "z");
  EXPECT_EQ(function->graph.outputs[0]->producer()->input(0)->name(), "z") << Print(*function);
}

TEST(Sequence, Map) {
  auto module = ImportFolding(R"(g (float[2] a, float[2] b, float[2] k) => (float[2,2] y) {
      s = SequenceConstruct(a, b)
      t = SequenceConstruct(b, a)
      u, v = SequenceMap<body = each (float[2] p, float[2] q, float[2] r) => (float[2] m, float[2] n) {
        m = Mul(p, q)
        n = Add(p, r)
      }>(s, t, k)
      y = ConcatFromSequence<axis = 0, new_axis = 1>(v)
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Mul", "Add", "Mul", "Add", "Unsqueeze", "Unsqueeze", "Concat"));
}

TEST(Sequence, WrongUsesAreRefused) {
  const std::string head = std::string("g (float[2] a, int64[2] i, int64 n) => (y)") + kPlaces;
  EXPECT_THAT(Refusal(head + "{ s = SequenceConstruct(a, i) y = SequenceLength(s) }"),
              HasSubstr("float32 tensors cannot take"));
  EXPECT_THAT(Refusal(head + "{ s = SequenceConstruct(a) y = SequenceAt(s, one) }"),
              HasSubstr("position 1 does not exist among 1"));
  EXPECT_THAT(Refusal(head + "{ s = SequenceConstruct(a) [at] y = SequenceAt(s, n) }"),
              HasSubstr("node 'at' (SequenceAt), opset 21: its position, 'n'"));
  EXPECT_THAT(Refusal(head + "{ s = SequenceConstruct(a) y = Relu(s) }"),
              HasSubstr("a sequence of 1 tensors"));
  EXPECT_THAT(Refusal(head + "{ y = SequenceLength(a) }"), HasSubstr("wanted a sequence"));
  EXPECT_THAT(Refusal(head + "{ y = SequenceConstruct(a, a) }"),
              HasSubstr("output 'y': is a sequence of 2 tensors"));
  EXPECT_THAT(Refusal(head + "{ s = SequenceEmpty() y = ConcatFromSequence<axis = 0>(s) }"),
              HasSubstr("empty sequence"));
  EXPECT_THAT(Refusal("g (float[100000,2] x) => (y) { s = SplitToSequence(x) y = SequenceLength(s) }"),
              HasSubstr("more than the supported 65536"));
}

TEST(Optional, WithAndWithoutElement) {
  auto module = ImportFolding(R"(g (float[2] x) => (float[2] y, bool some, bool none) {
      o = Optional(x)
      y = OptionalGetElement(o)
      some = OptionalHasElement(o)
      e = Optional<type = float[2]>()
      none = OptionalHasElement(e)
    })");
  EXPECT_THAT(Ops(*module), ElementsAre("Identity"));
  EXPECT_EQ((*module->graph.outputs[1]->data.bytes)[0], 1);
  EXPECT_EQ((*module->graph.outputs[2]->data.bytes)[0], 0);
  EXPECT_THAT(Refusal("g (float[2] x) => (y) { e = Optional<type = float[2]>() y = OptionalGetElement(e) }"),
              HasSubstr("has none"));
}

}  // namespace
}  // namespace pipec
