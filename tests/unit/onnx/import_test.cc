#include <gmock/gmock.h>

#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Refusal(const std::string& text, ImportOptions options = {}) {
  auto module = TryImport(text, std::move(options));
  return module.ok() ? "accepted" : std::string(module.status().message());
}

std::string Types(const Module& module) {
  std::string types;
  for (const Value* output : module.graph.outputs) {
    types += output->name() + ":" + ToString(output->type) + " ";
  }
  return types;
}

TEST(Import, ParametersConstantsInputsAndOutputs) {
  auto module = Import(Text(R"(g (float[2,3] x) => (float[2,4] y)
      <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float two = {2.0}, int64[1] axes = {0}> {
        h = MatMul(x, w)
        y = Mul(h, two)
      })"));
  EXPECT_EQ(module->microbatch_size, 2);
  EXPECT_EQ(module->graph.FindValue("w")->kind(), ValueKind::kParameter);
  EXPECT_EQ(module->graph.FindValue("two")->kind(), ValueKind::kConstant);
  EXPECT_EQ(module->graph.FindValue("axes")->kind(), ValueKind::kConstant);
  EXPECT_EQ(module->graph.FindValue("x")->batch_axis, 0);
  ASSERT_EQ(module->notes.size(), 1);
  EXPECT_THAT(module->notes[0], HasSubstr("two"));
  EXPECT_EQ(Types(*module), "y:float32[2,4] ");
}

TEST(Import, SortsNodesAndKeepsOutputsThatAreInputsInitializersOrUsedInside) {
  auto module = Import(Text(R"(g (float[2] x) => (float[2] y, float[2] x, float[2] w, float[2] h)
      <float[2] w = {1,2}> {
        y = Relu(h)
        h = Add(x, w)
      })"));
  EXPECT_EQ(module->graph.first_node()->op(), "Add");
  EXPECT_EQ(Types(*module), "y:float32[2] x:float32[2] w:float32[2] h:float32[2] ");
}

TEST(Import, ZeroNodesAndAbsentOperands) {
  EXPECT_EQ(Types(*Import(Text("g (float[2] x) => (float[2] x) {}"))), "x:float32[2] ");
  auto module = Import(Text(
      "g (float[2] x) => (y) <int64[2] pads = {1, 1}, int64[1] axes = {0}> { y = Pad(x, pads, , axes) }"));
  EXPECT_EQ(module->graph.first_node()->input(2), nullptr);
  EXPECT_EQ(module->graph.first_node()->input(3)->name(), "axes");
  EXPECT_EQ(Types(*module), "y:float32[4] ");
}

TEST(Import, BindsTheBatchAndNamedDimensions) {
  const std::string text = Text("g (float[N,T] x, float[T] p) => (float[N,T] y) { y = Add(x, p) }");
  EXPECT_THAT(Refusal(text), AllOf(HasSubstr("input 'x', axis 1"), HasSubstr("--dim T=N")));
  EXPECT_EQ(Types(*Import(text, {.dims = {{"T", 5}}})), "y:float32[1,5] ");
  EXPECT_EQ(Types(*Import(text, {.dims = {{"T", 5}}, .microbatch_size = 4})), "y:float32[4,5] ");
  EXPECT_EQ(Import(text, {.dims = {{"T", 5}, {"N", 3}}})->microbatch_size, 3);
  EXPECT_THAT(Refusal(text, {.dims = {{"T", 5}, {"N", 3}}, .microbatch_size = 2}),
              HasSubstr("leave out --dim N"));
  EXPECT_THAT(Refusal(text, {.dims = {{"S", 5}}}), AllOf(HasSubstr("--dim S=5"), HasSubstr("N, T")));
  // T is also axis 0 of p, but not its batch.
  EXPECT_EQ(Import(text, {.dims = {{"T", 5}}})->graph.FindValue("p")->batch_axis, -1);
}

TEST(Import, ABatchWrittenIntoTheModelIsTheDefault) {
  const std::string text = Text("g (float[8,3] x) => (float[8,3] y) { y = Relu(x) }");
  EXPECT_EQ(Import(text)->microbatch_size, 8);
  EXPECT_EQ(Types(*Import(text, {.microbatch_size = 2})), "y:float32[2,3] ");
}

TEST(Import, BoundInputsBecomeConstants) {
  auto module =
      Import(Text("g (float[2,3] x, int64[2,3] p) => (float[2,3] y) { c = Cast<to = 1>(p) y = Add(x, c) }"),
             {.bound_inputs = {{"p", "range"}}});
  const std::string& bytes = *module->graph.FindValue("p")->data.bytes;
  const auto* p = reinterpret_cast<const int64_t*>(bytes.data());
  EXPECT_EQ(std::vector<int64_t>(p, p + 6), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  std::string npy("\x93NUMPY\x01\x00", 8);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  npy += std::string{static_cast<char>(header.size()), '\0'} + header + std::string(24, '\1');
  const std::string file = WriteFile("p.npy", npy);
  const std::string text = Text("g (float[2,3] x, float[2,3] p) => (float[2,3] y) { y = Add(x, p) }");
  EXPECT_EQ(*Import(text, {.bound_inputs = {{"p", file}}})->graph.FindValue("p")->data.bytes,
            std::string(24, '\1'));
  EXPECT_THAT(Refusal(text, {.bound_inputs = {{"q", "ones"}}}), AllOf(HasSubstr("q"), HasSubstr("x, p")));
}

TEST(Import, ShapeArithmeticFoldsOnceDimensionsAreBound) {
  auto module = Import(
      Text(R"(g (float[N,2,8] x) => (y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] rest = {-1}> {
        s = Shape(x)
        n = Gather(s, zero)
        m = Div(n, two)
        t = Concat<axis = 0>(m, two, rest)
        y = Reshape(x, t)
      })"),
      {.microbatch_size = 6, .evaluate = Evaluate});
  EXPECT_EQ(Types(*module), "y:float32[3,2,16] ");
  EXPECT_EQ(module->graph.num_nodes(), 1);
}

TEST(Import, ConstantsKnowWhetherTheyCountSamples) {
  const auto module =
      Import(Text(R"(g (float[N,3] x) => (float[N,3] y, float samples, float all, float columns) {
        y = Identity(x)
        s = Shape<end = 1>(x)  s0 = Squeeze(s)  samples = Cast<to = 1>(s0)
        n = Size(x)  all = Cast<to = 1>(n)
        c = Shape<start = 1>(x)  c0 = Squeeze(c)  columns = Cast<to = 1>(c0)
      })"),
             {.microbatch_size = 2, .evaluate = Evaluate});
  const Graph& graph = module->graph;
  EXPECT_TRUE(graph.outputs[1]->counts_samples);
  EXPECT_TRUE(graph.outputs[2]->counts_samples);
  EXPECT_FALSE(graph.outputs[3]->counts_samples);
}

TEST(Import, ConstantsInEveryForm) {
  auto module = Import(Text(R"(g () => (a, b, c, d, e) {
        a = Constant<value = float[2] {1, 2}>()
        b = Constant<value_int = 7>()
        c = Constant<value_ints = [1, 2, 3]>()
        d = Constant<value_float = 1.5>()
        e = Constant<value_floats = [1.5, 2.5]>()
      })"));
  EXPECT_EQ(Types(*module), "a:float32[2] b:int64[] c:int64[3] d:float32[] e:float32[2] ");
  EXPECT_THAT(Print(*module),
              AllOf(HasSubstr("c: int64[3] = {1, 2, 3}"), HasSubstr("e: float32[2] = {1.5, 2.5}")));
  EXPECT_THAT(Refusal(Text(R"(g () => (a) { a = Constant<value_string = "s">() })")),
              HasSubstr("tensor of numbers"));
}

TEST(Import, RefusesAndNames) {
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { [fc] y = Foo(x) }")),
              AllOf(HasSubstr("node 'fc'"), HasSubstr("unknown op Foo in domain 'ai.onnx', opset 21")));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = my.domain.Foo(x) }")),
              HasSubstr("domain 'my.domain'"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Relu(z) }")),
              HasSubstr("uses 'z', which nothing defines"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Relu(z) z = Relu(y) }")), HasSubstr("cycle"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Relu(x) y = Relu(x) }")), HasSubstr("a second time"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (z) { y = Relu(x) }")), HasSubstr("output 'z'"));
  EXPECT_THAT(Refusal(Text("g (float[2] x, int64[2] i) => (y) { y = Add(x, i) }")),
              HasSubstr("one type, got float32 and int64"));
  EXPECT_THAT(Refusal(Text("g (bool[2] x) => (y) { y = Add(x, x) }")), HasSubstr("does not take bool"));
  EXPECT_THAT(Refusal(Text("g (float[2,3] x, float[4] w) => (y) { y = MatMul(x, w) }")),
              HasSubstr("does not fit"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = NonZero(x) }")), HasSubstr("depends on data"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Relu<nope = 1>(x) }")), HasSubstr("nope"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (int64[2] y) { y = Relu(x) }")),
              HasSubstr("output 'y' is declared"));
  EXPECT_THAT(Refusal(Text("g (bool c) => (y) { [choose] y = If<then_branch = t () => (float[1] a) { a = "
                           "Constant<value_floats = [1.0]>() }, else_branch = e () => (float[1] b) { b = "
                           "Constant<value_floats = [2.0]>() }>(c) }")),
              AllOf(HasSubstr("choose"), HasSubstr("condition, 'c'")));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Relu(x) }", 99)), HasSubstr("newest known, 27"));
  EXPECT_THAT(Refusal("<ir_version: 99, opset_import: [\"\" : 21]> g () => () {}"),
              HasSubstr("newest known, 13"));
  EXPECT_THAT(Refusal("<ir_version: 10> g (float[2] x) => (y) { y = Relu(x) }"),
              HasSubstr("no opset imports"));
}

TEST(Import, RefusesWhatIsNotOnnx) {
  auto refusal = [](const std::string& name, const std::string& contents) {
    return std::string(ImportModel(WriteFile(name, contents), {}).status().message());
  };
  EXPECT_THAT(refusal("a.onnx", "this is no model"), HasSubstr("is not an ONNX model"));
  EXPECT_THAT(refusal("b.onnx", ""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("c.onnxtxt", "g (float[2 x"), HasSubstr("ParseError"));
  EXPECT_THAT(refusal("d.onnxtxt", Text("g (float[99999999999999999999] x) => (x) {}")),
              HasSubstr("d.onnxtxt"));
  EXPECT_THAT(refusal("e.pt", "PK"), HasSubstr("neither .onnx"));
  EXPECT_EQ(ImportModel("/nowhere/model.onnx", {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pipec
