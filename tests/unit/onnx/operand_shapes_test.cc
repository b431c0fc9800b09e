// Operands whose shapes onnx's inference does not look at: refused where they are read, and not by a kernel.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "tests/unit/ops/graph_builder.h"

namespace pipec {
namespace {

using testing::HasSubstr;

struct Case {
  std::string op;
  std::vector<Shape> operands;  // the good ones; {-1}: absent
  int wrong;                    // this operand ...
  Shape shape;                  // ... has this shape instead
  std::string said;
  Attributes attributes = {};
};

const Shape kAbsent{-1};

absl::Status Infer(const Case& c, bool wrong) {
  GraphBuilder b;
  NodeSpec spec{.op = c.op, .attributes = c.attributes};
  for (int k = 0; k < static_cast<int>(c.operands.size()); ++k) {
    const Shape& shape = wrong && k == c.wrong ? c.shape : c.operands[k];
    const bool lengths = k == 4 && (c.op == "LSTM" || c.op == "RNN");
    spec.inputs.push_back(shape == kAbsent
                              ? nullptr
                              : b.graph.AddValue(ValueKind::kInput, absl::StrCat("x", k),
                                                 {lengths ? DType::kInt32 : DType::kFloat32, shape}));
  }
  return InferTypes(spec, 1).status();
}

// T=5 steps, N=2 samples, I=3 inputs, H=4 hidden; images [2,6,5,5].
TEST(OperandShapes, Table) {
  const Attributes hidden = With({{"hidden_size", int64_t{4}}});
  const Attributes batch_first = With({{"hidden_size", int64_t{4}}, {"layout", int64_t{1}}});
  const std::vector<Shape> lstm = {{5, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32},
                                   {2},       {1, 2, 4},  {1, 2, 4},  {1, 12}};
  const Case cases[] = {
      {"Gemm",
       {{3, 4}, {4, 6}, {6}},
       2,
       {4},
       "C, operand 2, is float32[4], which does not broadcast to [3,6]"},
      {"Gemm", {{3, 4}, {4, 6}, {3, 1}}, 2, {2, 1}, "does not broadcast to [3,6]"},
      {"Gemm", {{3, 4}, {4, 6}, {}}, 2, {1, 1, 6}, "does not broadcast to [3,6]"},
      {"Gemm",
       {{4, 3}, {6, 4}, {3, 6}},
       2,
       {6, 3},
       "does not broadcast to [3,6]",
       With({{"transA", int64_t{1}}, {"transB", int64_t{1}}})},
      {"PRelu", {{2, 6, 5, 5}, {6, 1, 1}}, 1, {6}, "slope, operand 1, is float32[6]"},
      {"BatchNormalization",
       {{2, 6, 5, 5}, {6}, {6}, {6}, {6}},
       1,
       {5},
       "scale, operand 1, is float32[5], wanted 6"},
      {"BatchNormalization", {{2, 6, 5, 5}, {6}, {6}, {6}, {6}}, 2, {1}, "bias, operand 2"},
      {"BatchNormalization", {{2, 6, 5, 5}, {6}, {6}, {6}, {6}}, 3, {7}, "mean, operand 3"},
      {"BatchNormalization", {{2, 6}, {6}, {6}, {6}, {6}}, 4, {2}, "variance, operand 4"},
      {"InstanceNormalization", {{2, 6, 5}, {6}, {6}}, 1, {5}, "scale, operand 1"},
      {"InstanceNormalization", {{2, 6, 5}, {6}, {6}}, 2, {1}, "bias, operand 2"},
      {"LayerNormalization", {{2, 6, 5}, {5}, {5}}, 1, {6}, "scale, operand 1, is float32[6], wanted 5"},
      {"LayerNormalization",
       {{2, 6, 5}, {6, 5}, {6, 5}},
       2,
       {5},
       "bias, operand 2",
       With({{"axis", int64_t{1}}})},
      {"Conv",
       {{2, 6, 5, 5}, {8, 6, 3, 3}, {8}},
       2,
       {6},
       "bias, operand 2, is float32[6], wanted 8 element(s)"},
      {"ConvTranspose",
       {{2, 6, 5, 5}, {6, 2, 3, 3}, {4}},
       2,
       {2},
       "wanted 4 element(s)",
       With({{"group", int64_t{2}}})},
      {"DeformConv", {{2, 6, 5, 5}, {8, 6, 3, 3}, {2, 18, 3, 3}, {8}}, 3, {6}, "bias, operand 3"},
      {"LSTM", lstm, 1, {1, 16, 5}, "W, operand 1", hidden},
      {"LSTM", lstm, 3, {1, 16}, "B, operand 3, is float32[1,16], wanted [1,32]", hidden},
      {"LSTM", lstm, 4, {3}, "sequence_lens, operand 4", hidden},
      {"LSTM", lstm, 5, {1, 3, 4}, "initial_h, operand 5", hidden},
      {"LSTM", lstm, 6, {1, 2, 5}, "initial_c, operand 6", hidden},
      {"LSTM", lstm, 7, {1, 16}, "P, operand 7", hidden},
      {"GRU",
       {{2, 5, 3}, {1, 12, 3}, {1, 12, 4}, kAbsent, kAbsent, {2, 1, 4}},
       5,
       {1, 2, 4},
       "wanted [2,1,4]",
       batch_first},
      {"RNN", {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}, {2}, {1, 2, 4}}, 5, {2, 2, 4}, "initial_h", hidden},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Infer(c, false), absl::OkStatus()) << c.op << " operand " << c.wrong;
    const absl::Status status = Infer(c, true);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.op << " operand " << c.wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace pipec
