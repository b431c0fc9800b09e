// Gradients through what stands in the place of ops that leave no node of their own: as the importer makes it, against
// differences. Every op that --list-ops says of that it is differentiated so is here.
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/schema/opsets.h"
#include "gmock/gmock.h"
#include "passes/evaluate.h"
#include "passes/gradients/gradient.h"
#include "passes/pass_manager.h"
#include "tests/support/check_gradient.h"
#include "tests/support/interpreter.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

struct FunctionCase {
  std::string op;
  std::vector<std::vector<int64_t>> parameters;  // p0, p1, ... of float32, drawn from [-1, 1)
  std::string nodes;                             // in ONNX's text syntax; the result is y
  std::string shape = "N";                       // of y, where one number is not enough
  int opset = 27;
  CheckGradientOptions options = {};
};

std::string Ints(const std::string& name, const std::string& values) {
  return absl::StrCat(name, " = Constant <value_ints = [", values, "]> ()\n");
}

// Where no element lies within a step of a corner at -1, 0, 0.3, 0.5 or 1: drawn numbers do not.
const std::vector<FunctionCase>& Cases() {
  static const auto* const cases = new std::vector<FunctionCase>{
      {"AffineGrid", {{2, 2, 3}}, Ints("size", "2,3,4,5") + "y = AffineGrid(p0, size)", "2,4,5,2"},
      {"AffineGrid",
       {{1, 3, 4}},
       Ints("size", "1,2,2,3,2") + "y = AffineGrid <align_corners = 1> (p0, size)",
       "1,2,3,2,3"},
      {"Attention", {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, "y = Attention(p0, p1, p2)", "1,2,3,4"},
      {"Attention",
       {{1, 4, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 2}, {3, 3}},
       "y = Attention <is_causal = 1, softcap = 2.0, scale = 0.7> (p0, p1, p2, p3)",
       "1,4,3,2"},
      {"Attention",
       {{2, 3, 8}, {2, 5, 8}, {2, 5, 8}},
       "y = Attention <q_num_heads = 2, kv_num_heads = 2> (p0, p1, p2)",
       "2,3,8"},
      {"CastLike", {{2, 3}, {2}}, "y = CastLike(p0, p1)", "2,3"},
      {"CausalConvWithState",
       {{2, 3, 5}, {3, 1, 3}, {3}, {2, 3, 2}},
       "y, s = CausalConvWithState(p0, p1, p2, p3)",
       "2,3,5"},
      {"CausalConvWithState",
       {{2, 3, 5}, {3, 1, 3}},
       "y, s = CausalConvWithState <activation = \"silu\"> (p0, p1)",
       "2,3,5"},
      {"Celu", {{3, 4}}, "y = Celu <alpha = 0.7> (p0)", "3,4"},
      {"CenterCropPad", {{4, 3}}, Ints("size", "2,5") + "y = CenterCropPad(p0, size)", "2,5"},
      {"CenterCropPad", {{4, 3}}, Ints("size", "5") + "y = CenterCropPad <axes = [0]> (p0, size)", "5,3"},
      {"Clip",
       {{3, 4}},
       "a = Constant <value = float {-0.5}> ()\nb = Constant <value = float {0.3}> ()\ny = Clip(p0, a, b)",
       "3,4"},
      {"Clip", {{3, 4}}, "b = Constant <value = float {0.3}> ()\ny = Clip(p0, , b)", "3,4"},
      {"ConcatFromSequence",
       {{2, 3}, {1, 3}},
       "s = SequenceConstruct(p0, p1)\ny = ConcatFromSequence <axis = 0> (s)",
       "3,3"},
      {"Dropout",
       {{4, 5}},
       "r = Constant <value = float {0.3}> ()\nt = Constant <value = bool {1}> ()\ny = Dropout(p0, r, t)",
       "4,5"},
      {"DynamicQuantizeLinear", {{6}}, "q, y, zero = DynamicQuantizeLinear(p0)", ""},
      {"Elu", {{3, 4}}, "y = Elu <alpha = 1.3> (p0)", "3,4"},
      {"GroupNormalization",
       {{2, 4, 3}, {4}, {4}},
       "y = GroupNormalization <num_groups = 2> (p0, p1, p2)",
       "2,4,3"},
      {"HardSigmoid", {{3, 4}}, "y = HardSigmoid <alpha = 0.7> (p0)", "3,4"},
      {"HardSwish", {{3, 4}}, "y = HardSwish(p0)", "3,4"},
      {"If",
       {{2, 3}, {2, 3}},
       "c = Constant <value = bool {1}> ()\n"
       "y = If(c) <then_branch = t () => (float[2,3] o) { o = Mul(p0, p1) }, "
       "else_branch = e () => (float[2,3] o) { o = Add(p0, p1) }>",
       "2,3"},
      {"LeakyRelu", {{3, 4}}, "y = LeakyRelu <alpha = 0.2> (p0)", "3,4"},
      {"LinearAttention",
       {{1, 3, 4}, {1, 3, 4}, {1, 3, 4}},
       "y, s = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = \"linear\"> (p0, p1, p2)",
       "1,3,4"},
      {"Loop",
       {{2, 3}, {2, 3}},
       "n = Constant <value = int64 {3}> ()\n"
       "y = Loop(n, , p0) <body = b (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] w) "
       "{ d = Identity(c)\n w = Mul(v, p1) }>",
       "2,3"},
      {"MeanVarianceNormalization", {{2, 3, 2, 2}}, "y = MeanVarianceNormalization(p0)", "2,3,2,2"},
      {"Mish", {{3, 4}}, "y = Mish(p0)", "3,4"},
      {"NegativeLogLikelihoodLoss",
       {{3, 4}},
       Ints("labels", "1,0,3") + "y = NegativeLogLikelihoodLoss <reduction = \"mean\"> (p0, labels)",
       ""},
      {"Optional", {{2, 3}}, "o = Optional(p0)\nv = OptionalGetElement(o)\ny = Mul(v, v)", "2,3"},
      {"OptionalGetElement", {{2, 3}}, "o = Optional(p0)\nv = OptionalGetElement(o)\ny = Mul(v, v)", "2,3"},
      {"PRelu", {{3, 4}, {4}}, "y = PRelu(p0, p1)", "3,4"},
      {"RMSNormalization", {{2, 3, 4}, {4}}, "y = RMSNormalization(p0, p1)", "2,3,4"},
      {"RMSNormalization",
       {{2, 3, 4}, {3, 4}},
       "y = RMSNormalization <axis = 1, epsilon = 0.1> (p0, p1)",
       "2,3,4"},
      {"ReduceL1", {{2, 3, 4}}, Ints("axes", "1") + "y = ReduceL1(p0, axes)", "2,1,4"},
      {"ReduceL2", {{2, 3, 4}}, Ints("axes", "0,-1") + "y = ReduceL2 <keepdims = 0> (p0, axes)", "3"},
      {"ReduceLogSum",
       {{2, 3, 4}},
       "e = Exp(p0)\n" + Ints("axes", "1") + "y = ReduceLogSum(e, axes)",
       "2,1,4"},
      {"ReduceLogSumExp", {{2, 3, 4}}, Ints("axes", "2") + "y = ReduceLogSumExp(p0, axes)", "2,3,1"},
      {"RotaryEmbedding", {{1, 2, 3, 4}, {1, 3, 2}, {1, 3, 2}}, "y = RotaryEmbedding(p0, p1, p2)", "1,2,3,4"},
      {"RotaryEmbedding",
       {{2, 3, 8}, {5, 2}, {5, 2}},
       "ids = Constant <value = int64[2,3] {0, 1, 2, 4, 0, 3}> ()\n"
       "y = RotaryEmbedding <num_heads = 2, interleaved = 1> (p0, p1, p2, ids)",
       "2,3,8"},
      {"Scan",
       {{3}, {4, 3}},
       "f, y = Scan(p0, p1) <num_scan_inputs = 1, body = b (float[3] s, float[3] x) => (float[3] t, "
       "float[3] o) "
       "{ t = Mul(s, x)\n o = Add(t, x) }>",
       "4,3"},
      {"Scatter",
       {{3, 3}, {2, 3}},
       "i = Constant <value = int64[2,3] {1, 0, 2, 0, 2, 1}> ()\ny = Scatter(p0, i, p1)",
       "3,3",
       10},
      {"Selu", {{3, 4}}, "y = Selu(p0)", "3,4"},
      {"SequenceAt",
       {{2, 3}, {2, 3}},
       "s = SequenceConstruct(p0, p1)\nk = Constant <value = int64 {-1}> ()\nv = SequenceAt(s, k)\ny = "
       "Mul(v, p0)",
       "2,3"},
      {"SequenceConstruct",
       {{2, 3}, {1, 3}},
       "s = SequenceConstruct(p0, p1)\ny = ConcatFromSequence <axis = 0> (s)",
       "3,3"},
      {"SequenceErase",
       {{2, 3}, {2, 3}, {2, 3}},
       "s = SequenceConstruct(p0, p1, p2)\nk = Constant <value = int64 {1}> ()\nt = SequenceErase(s, k)\n"
       "y = ConcatFromSequence <axis = 0> (t)",
       "4,3"},
      {"SequenceInsert",
       {{2, 3}, {2, 3}},
       "s = SequenceConstruct(p0)\nk = Constant <value = int64 {0}> ()\nt = SequenceInsert(s, p1, k)\n"
       "y = ConcatFromSequence <axis = 1> (t)",
       "2,6"},
      {"SequenceMap",
       {{2, 3}, {2, 3}},
       "s = SequenceConstruct(p0, p1)\n"
       "t = SequenceMap(s) <body = b (float[2,3] v) => (float[2,3] w) { w = Mul(v, v) }>\n"
       "y = ConcatFromSequence <axis = 0> (t)",
       "4,3"},
      {"Shrink", {{3, 4}}, "y = Shrink <lambd = 0.3, bias = 0.1> (p0)", "3,4"},
      {"SoftmaxCrossEntropyLoss",
       {{3, 4}},
       Ints("labels", "1,0,3") + "y = SoftmaxCrossEntropyLoss <ignore_index = 0> (p0, labels)",
       ""},
      {"SoftmaxCrossEntropyLoss",
       {{3, 4}},
       Ints("labels", "1,0,3") + "l, y = SoftmaxCrossEntropyLoss <reduction = \"none\"> (p0, labels)",
       "3,4"},
      {"Softplus", {{3, 4}}, "y = Softplus(p0)", "3,4"},
      {"Softsign", {{3, 4}}, "y = Softsign(p0)", "3,4"},
      {"SplitToSequence",
       {{4, 3}},
       Ints("sizes", "1,3") +
           "s = SplitToSequence <axis = 0> (p0, sizes)\nk = Constant <value = int64 {1}> ()\n"
           "v = SequenceAt(s, k)\ny = Mul(v, v)",
       "3,3"},
      {"Swish", {{3, 4}}, "y = Swish <alpha = 1.5> (p0)", "3,4"},
      {"ThresholdedRelu", {{3, 4}}, "y = ThresholdedRelu <alpha = 0.3> (p0)", "3,4"},
      {"Upsample",
       {{1, 1, 2, 3}},
       "k = Constant <value = float[4] {1, 1, 2, 1.5}> ()\ny = Upsample <mode = \"linear\"> (p0, k)",
       "1,1,4,4",
       9},
  };
  return *cases;
}

absl::StatusOr<std::unique_ptr<Module>> ImportText(const std::string& name, const std::string& text) {
  const std::string path = testing::ScratchPath(name + ".onnxtxt");
  std::ofstream(path) << text;
  ImportOptions options;
  options.evaluate = [](const Node& node, absl::Span<const std::string* const> operands) {
    return Evaluate(node, operands);
  };
  return ImportModel(path, options);
}

std::string TextOf(const FunctionCase& c) {
  std::mt19937_64 random(3);
  std::vector<std::string> parameters;
  for (const std::vector<int64_t>& shape : c.parameters) {
    std::vector<double> contents;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      contents.push_back(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    parameters.push_back(absl::StrCat("float[", absl::StrJoin(shape, ","), "] p", parameters.size(), " = {",
                                      absl::StrJoin(contents, ", "), "}"));
  }
  const std::string result = c.shape.empty() ? "float y" : absl::StrCat("float[", c.shape, "] y");
  return absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", c.opset, "]>\nmodel () => (", result, ")\n<",
                      absl::StrJoin(parameters, ",\n"), ">\n{\n", c.nodes, "\n}\n");
}

class GradientFunctionTest : public ::testing::TestWithParam<int> {};

TEST_P(GradientFunctionTest, EqualsCentralDifferences) {
  const FunctionCase& c = Cases()[GetParam()];
  const auto module = ImportText(absl::StrCat("function_case_", GetParam()), TextOf(c));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(CheckGradient(**module, c.options), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(Functions, GradientFunctionTest, ::testing::Range(0, static_cast<int>(Cases().size())),
                         [](const auto& info) {
                           return absl::StrCat(Cases()[info.param].op, "_", info.param);
                         });

TEST(GradientFunctionsTest, EveryOpThatClaimsOneIsTested) {
  std::set<std::string> tested, claimed;
  for (const FunctionCase& c : Cases()) tested.insert(c.op);
  for (const OpHistory& history : OpHistories()) {
    if (GradientKindOf(history.op, history.domain) == GradientKind::kFunction) claimed.insert(history.op);
  }
  EXPECT_EQ(tested, claimed);
}

// Ops whose gradients are all zero have neither.
TEST(GradientFunctionsTest, MostOpsHaveAGradient) {
  std::map<GradientKind, int> counts;
  for (const OpHistory& history : OpHistories()) ++counts[GradientKindOf(history.op, history.domain)];
  EXPECT_GE(counts[GradientKind::kRule] + counts[GradientKind::kFunction], 120);
}

// The gradient of the sum of y = node(p), of n numbers.
std::vector<float> GradientAt(const std::vector<float>& p, const std::string& node) {
  const std::string n = absl::StrCat(p.size());
  const auto module = ImportText(
      "corner", absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21]>\nmodel () => (float s)\n<float[", n,
                             "] p = {", absl::StrJoin(p, ", "), "}>\n{\n", node,
                             "\ns = ReduceSum <keepdims = 0> (y)\n}\n"));
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  PassContext context;
  context.options.microbatches = 1;
  EXPECT_EQ(RunPasses(**module, context, {"fold-constants", "build-loss", "build-gradients"}),
            absl::OkStatus());
  const auto interpreter = Interpreter::Make((*module)->graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  EXPECT_EQ((*interpreter)->Forward(), absl::OkStatus());
  EXPECT_EQ((*interpreter)->Backward(), absl::OkStatus());
  std::vector<float> sum(p.size(), 0);
  for (const Value* use : (*module)->training.parameters.at(0).accumulated) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*interpreter)->Data<float>(use)[i];
  }
  return sum;
}

// What PyTorch 2.15 gives.
TEST(GradientFunctionsTest, CornersFollowPyTorch) {
  using ::testing::Pointwise;
  const auto near = [](std::vector<float> expected) { return Pointwise(::testing::FloatNear(1e-6), expected); };
  EXPECT_THAT(GradientAt({-1, 0, 1}, "y = LeakyRelu <alpha = 0.2> (p)"), near({0.2, 0.2, 1}));
  EXPECT_THAT(GradientAt({-1, 0, 1}, "k = Constant <value = float[1] {0.2}> ()\ny = PRelu(p, k)"),
              near({0.2, 0.2, 1}));
  EXPECT_THAT(GradientAt({-1, 0, 1}, "y = Elu <alpha = 1.3> (p)"), near({0.478243274, 1.3, 1}));
  EXPECT_THAT(GradientAt({-1, 0, 1}, "y = Selu(p)"), near({0.646768603, 1.75809934, 1.05070099}));
  EXPECT_THAT(GradientAt({-1, 0, 1}, "y = Celu <alpha = 0.7> (p)"), near({0.239651035, 1, 1}));
  EXPECT_THAT(GradientAt({-2, 0, 2}, "y = HardSigmoid <alpha = 0.25> (p)"), near({0, 0.25, 0}));
  EXPECT_THAT(GradientAt({-3, 0, 3}, "y = HardSwish(p)"), near({0, 0.5, 1}));
  EXPECT_THAT(GradientAt({-1, 0, 1, 2},
                         "a = Constant <value = float {-1}> ()\nb = Constant <value = float {1}> ()\n"
                         "y = Clip(p, a, b)"),
              near({1, 1, 1, 0}));
  EXPECT_THAT(GradientAt({0, 0}, "y = ReduceL2(p)"), near({0, 0}));
  EXPECT_THAT(GradientAt({0, 1}, "y = ReduceL1(p)"), near({0, 1}));
  EXPECT_THAT(GradientAt({-0.5, 0.5, 1}, "y = Shrink <lambd = 0.5, bias = 0.5> (p)"), near({0, 0, 1}));
  EXPECT_THAT(GradientAt({1, 2}, "y = ThresholdedRelu <alpha = 1.0> (p)"), near({0, 1}));
}

// Where exp overflows a float32 on the way.
TEST(GradientFunctionsTest, LargeNumbersHaveFiniteGradients) {
  using ::testing::ElementsAre;
  EXPECT_THAT(GradientAt({-1000, 0, 1000}, "y = Softplus(p)"), ::testing::ElementsAre(0, 0.5, 1));
  EXPECT_THAT(GradientAt({-1000, 1000}, "y = Elu(p)"), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(GradientAt({1000, 1000}, "y = ReduceLogSumExp(p)"), ::testing::ElementsAre(0.5, 0.5));
  EXPECT_THAT(GradientAt({-1000, 1000}, "y = Mish(p)"), ::testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace pipec
