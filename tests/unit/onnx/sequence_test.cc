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
              HasSubstr("a sequence of 1 tensor"));
  EXPECT_THAT(Refusal(head + "{ y = SequenceLength(a) }"), HasSubstr("wanted a sequence"));
  EXPECT_THAT(Refusal(head + "{ s = SequenceEmpty() y = ConcatFromSequence<axis = 0>(s) }"),
              HasSubstr("empty sequence"));
  EXPECT_THAT(Refusal("g (float[100000,2] x) => (y) { s = SplitToSequence(x) y = SequenceLength(s) }"),
              HasSubstr("more than the supported 65536"));
}

std::vector<std::string> Names(absl::Span<Value* const> values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name());
  return names;
}

TEST(Sequence, AsAnOutputIsItsTensors) {
  auto module = ImportFolding(
      "g (float[2] a, float[3] b) => (seq(float[]) y, float[2] z) { c = Relu(a) "
      "y = SequenceConstruct(c, b, c) z = Neg(a) }");
  EXPECT_THAT(Names(module->graph.outputs), ElementsAre("y.0", "y.1", "y.2", "z"));
  EXPECT_EQ(ToString(module->graph.outputs[1]->type), "float32[3]");
  EXPECT_THAT(module->notes, testing::Contains(HasSubstr("the outputs y.0 to y.2")));
  EXPECT_THAT(Refusal("g (float[2] a) => (seq(float[3]) y) { y = SequenceConstruct(a) }"),
              HasSubstr("output 'y' is declared with shape [3]"));
  EXPECT_THAT(Refusal("g (float[2] a) => (float[2] y) { y = SequenceConstruct(a) }"),
              HasSubstr("output 'y' is declared as another kind of value, but is a sequence of 1"));
  EXPECT_THAT(Refusal("g (float[2] a) => (seq(float[]) y) { y = SequenceEmpty() }"),
              HasSubstr("nothing to compute"));
}

absl::StatusOr<std::unique_ptr<Module>> ImportWith(std::map<std::string, int64_t> dims,
                                                   const std::string& graph) {
  return TryImport(Text(graph), {.dims = std::move(dims), .evaluate = Evaluate});
}

TEST(Sequence, AsAnInputIsAsManyTensorsAsIsSaid) {
  const std::string graph =
      "g (seq(float[N,2]) s, float[2] k) => (float[M,2] y, int64 n) { y = ConcatFromSequence<axis = 0>(s) "
      "n = SequenceLength(s) }";
  auto module = ImportWith({{"s:length", 3}, {"N", 4}}, graph);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Names((*module)->graph.inputs()), ElementsAre("s.0", "s.1", "s.2", "k"));
  EXPECT_EQ(ToString((*module)->graph.outputs[0]->type), "float32[12,2]");
  // One of them with a size of its own.
  module = ImportWith({{"s:length", 2}, {"N", 4}, {"s.1:0", 5}}, graph);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(ToString((*module)->graph.outputs[0]->type), "float32[9,2]");
  EXPECT_THAT(std::string(ImportWith({{"N", 4}}, graph).status().message()), HasSubstr("--dim s:length=N"));
  EXPECT_THAT(std::string(ImportWith({{"s:length", 100000}}, graph).status().message()), HasSubstr("65536"));
  EXPECT_THAT(std::string(ImportWith({{"s:length", 2}, {"k:length", 2}, {"N", 4}}, graph).status().message()),
              HasSubstr("--dim k:length=2"));
  EXPECT_THAT(
      std::string(ImportWith({{"s:length", 1}},
                             "g (seq(float[2]) s, float[2] k) => (float[2] \"s.0\") { \"s.0\" = Relu(k) }")
                      .status()
                      .message()),
      HasSubstr("called 's.0'"));
}

TEST(Optional, AsAnInputIsThereUnlessItIsSaidNotToBe) {
  const std::string graph =
      "g (optional(float[2]) o, float[2] x) => (bool y, float[2] z) { y = OptionalHasElement(o) z = Relu(x) "
      "}";
  auto module = ImportWith({}, graph);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Names((*module)->graph.inputs()), ElementsAre("o", "x"));
  EXPECT_EQ((*(*module)->graph.outputs[0]->data.bytes)[0], 1);
  module = ImportWith({{"o:present", 0}}, graph);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Names((*module)->graph.inputs()), ElementsAre("x"));
  EXPECT_EQ((*(*module)->graph.outputs[0]->data.bytes)[0], 0);
  EXPECT_THAT(std::string(ImportWith({{"o:present", 2}}, graph).status().message()),
              HasSubstr("--dim o:present=2"));
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
