// Functions of the model and of ONNX's schemas, expanded in place.
#include <gmock/gmock.h>

#include "compiler/ir/print.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::HasSubstr;

std::string WithFunctions(const std::string& graph, const std::string& functions) {
  return "<ir_version: 10, opset_import: [\"\" : 21, \"mine\" : 1]>\n" + graph + functions;
}

constexpr char kHeader[] = "\n<opset_import: [\"\" : 21, \"mine\" : 1], domain: \"mine\">\n";

TEST(Function, NestedWithAttributeReferencesAndTheirDefaults) {
  auto module = Import(
      WithFunctions("g (float[2,3] x) => (float[2,3] y, float[2,3] z) { [a] y = mine.Outer<axis = 0>(x) [b] "
                    "z = mine.Outer(x) }",
                    std::string(kHeader) +
                        "Outer<axis: int = 1> (v) => (w) { t = mine.Inner<k: int = @axis>(v) w = Relu(t) }" +
                        kHeader + "Inner<k> (v) => (w) { w = Softmax<axis: int = @k>(v) }"));
  std::vector<int64_t> axes;
  for (const Node* node : module->graph.Nodes()) {
    if (node->Is("Softmax")) axes.push_back(node->attributes.Int("axis"));
  }
  EXPECT_EQ(axes, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(module->graph.num_nodes(), 4);
  EXPECT_NE(module->graph.FindValue("a/t"), nullptr) << Print(*module);
}

TEST(Function, OfAnotherOpsetThanTheGraph) {
  auto module = Import(WithFunctions(
      "g (float[2,3,4] x) => (y) { y = mine.Old(x) }",
      "\n<opset_import: [\"\" : 11], domain: \"mine\">\nOld (v) => (w) { w = Unsqueeze<axes = [0]>(v) }"));
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "float32[1,2,3,4]");
}

TEST(Function, PassesOperandsOnAndTakesAbsentOnes) {
  auto module = Import(WithFunctions(
      "g (float[2] x) => (float[2] y, float[2] z) { y, z = mine.Two(x) }",
      std::string(kHeader) + "Two (a, b) => (a, c) { c = mine.Use(a, b) }" + kHeader +
          "Use (a, b) => (c) { p = Constant<value_ints = [1, 1]>() q = Pad(a, p, b) n = Neg(q) s = "
          "Constant<value_ints = [1]>() e = Constant<value_ints = [3]>() c = Slice(n, s, e) }"));
  EXPECT_EQ(module->graph.outputs[0]->name(), "y");
  EXPECT_EQ(module->graph.outputs[1]->name(), "z");
  EXPECT_EQ(ToString(module->graph.outputs[1]->type), "float32[2]");
}

TEST(Function, RecursionIsRefused) {
  auto refusal = [](const std::string& functions) {
    return std::string(
        TryImport(WithFunctions("g (float[2] x) => (y) { y = mine.A(x) }", functions)).status().message());
  };
  EXPECT_THAT(refusal(std::string(kHeader) + "A (v) => (w) { w = mine.B(v) }" + kHeader +
                      "B (v) => (w) { w = mine.A(v) }"),
              HasSubstr("calls itself"));
  // 2^40 nodes out of 40 lines.
  std::string bomb;
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "Neg" : "mine.A" + std::to_string(i + 1);
    bomb += std::string(kHeader) + "A" + (i == 0 ? "" : std::to_string(i)) + " (v) => (w) { t = " + next +
            "(v) w = " + next + "(t) }";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("at most 200000"));
}

TEST(Function, OpsWithoutKernelAreExpandedByTheirSchema) {
  auto module = Import(Text("g (float[2] x) => (y) { y = HardSwish(x) }"));
  for (const Node* node : module->graph.Nodes()) {
    EXPECT_NE(node->op(), "HardSwish");
  }
  EXPECT_EQ(module->graph.outputs[0]->name(), "y");
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "float32[2]");
}

}  // namespace
}  // namespace pipec
