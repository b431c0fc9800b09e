// Batch axis rules. The table gives hand-worked cases; the check by contents runs a rule against the meaning
// of a batch axis where that is cheap: the samples of a reshaped tensor must still be whole slices.
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/graph_builder.h"

namespace pipec {
namespace {

struct Operand {
  Shape shape;
  int batch_axis = -1;
  std::vector<int64_t> ints = {};  // not empty: an int64 constant instead
};

struct Case {
  std::string op;
  std::vector<Operand> inputs;
  Shape output;
  int wanted;
  Attributes attributes = {};
  std::string domain = "";
};

// B = 3 samples throughout.
TEST(BatchAxis, Table) {
  const Case cases[] = {
      {"Add", {{{3, 4}, 0}, {{4}}}, {3, 4}, 0},
      {"Add", {{{4}}, {{3, 4}, 0}}, {3, 4}, 0},
      {"Add", {{{3, 4}, 0}, {{5, 3, 4}}}, {5, 3, 4}, 1},
      {"Mul", {{{3, 3}, 0}, {{3, 3}, 1}}, {3, 3}, -1},
      {"Add", {{{1, 4}, 0}, {{5, 4}}}, {5, 4}, -1},
      {"Where", {{{3, 1}, 0}, {{3, 4}, 0}, {{}}}, {3, 4}, 0},
      {"Tanh", {{{2, 3}, 1}}, {2, 3}, 1},
      {"Cast", {{{2, 3}, 1}}, {2, 3}, 1},
      {"MatMul", {{{3, 5, 4}, 0}, {{4, 6}}}, {3, 5, 6}, 0},
      {"MatMul", {{{3, 4}, 0}, {{4, 6}}}, {3, 6}, 0},
      {"MatMul", {{{3, 4}, 0}, {{4}}}, {3}, 0},
      {"MatMul", {{{3, 4}, 1}, {{4, 6}}}, {3, 6}, -1},
      {"MatMul", {{{2, 4}}, {{4, 3}, 1}}, {2, 3}, 1},
      {"MatMul", {{{4}}, {{3, 4, 6}, 0}}, {3, 6}, 0},
      {"MatMul", {{{3, 2, 4, 5}, 0}, {{3, 2, 5, 6}, 0}}, {3, 2, 4, 6}, 0},
      {"MatMul", {{{3, 4}, 0}, {{5, 4, 6}}}, {5, 3, 6}, 1},
      {"MatMul", {{{3, 4, 5}, 0}, {{2, 1, 5, 6}}}, {2, 3, 4, 6}, 1},
      {"MatMul", {{{3, 4}, 0}, {{4, 3}, 1}}, {3, 3}, -1},
      {"FusedMatMul", {{{4, 3}, 1}, {{4, 6}}}, {3, 6}, 0, With({{"trans_a", int64_t{1}}}), kPipecDomain},
      {"FusedMatMul", {{{3, 4}, 0}, {{3, 6}, 0}}, {4, 6}, -1, With({{"trans_a", int64_t{1}}}), kPipecDomain},
      {"FusedMatMul", {{{2, 4}}, {{3, 4}, 0}}, {2, 3}, 1, With({{"trans_b", int64_t{1}}}), kPipecDomain},
      {"FusedMatMul", {{{3, 4}, 0}, {{4, 6}}, {{6}}}, {3, 6}, 0, {}, kPipecDomain},
      {"FusedMatMul", {{{3, 4}, 0}, {{4, 6}}, {{6}, 0}}, {3, 6}, -1, {}, kPipecDomain},
      {"FusedAttention",
       {{{3, 2, 5, 4}, 0}, {{3, 2, 5, 4}, 0}, {{3, 2, 5, 4}, 0}},
       {3, 2, 5, 4},
       0,
       {},
       kPipecDomain},
      {"FusedAttention",
       {{{3, 5, 4}, 0}, {{3, 5, 4}, 0}, {{3, 5, 4}, 0}, {{3, 1, 5}, 0}},
       {3, 5, 4},
       0,
       {},
       kPipecDomain},
      // Of other samples: queries that see one another, a mask along another axis.
      {"FusedAttention", {{{5, 4}, 0}, {{5, 4}, 0}, {{5, 4}, 0}}, {5, 4}, -1, {}, kPipecDomain},
      {"FusedAttention",
       {{{5, 5, 4}, 0}, {{5, 5, 4}, 0}, {{5, 5, 4}, 0}, {{5, 5}, 0}},
       {5, 5, 4},
       -1,
       {},
       kPipecDomain},
      {"Gemm", {{{3, 4}, 0}, {{4, 6}}, {{6}}}, {3, 6}, 0},
      {"Gemm", {{{4, 3}, 1}, {{4, 6}}}, {3, 6}, 0, With({{"transA", int64_t{1}}})},
      {"Gemm", {{{3, 4}, 1}, {{4, 6}}}, {3, 6}, -1},
      {"Gemm", {{{2, 4}}, {{4, 6}}, {{2, 6}, 0}}, {2, 6}, 0},
      {"Transpose", {{{3, 4, 5}, 0}}, {5, 3, 4}, 1, With({{"perm", std::vector<int64_t>{2, 0, 1}}})},
      {"Transpose", {{{3, 4, 5}, 0}}, {5, 4, 3}, 2},
      {"Reshape", {{{3, 4, 5}, 0}, {{2}, -1, {12, 5}}}, {12, 5}, 0},
      {"Reshape", {{{12, 5}, 0}, {{3}, -1, {3, 4, 5}}}, {3, 4, 5}, 0},
      {"Reshape", {{{3, 8}, 0}, {{3}, -1, {3, 2, 4}}}, {3, 2, 4}, 0},
      {"Reshape", {{{4, 3, 5}, 1}, {{2}, -1, {12, 5}}}, {12, 5}, -1},
      {"Reshape", {{{4, 3, 5}, 1}, {{2}, -1, {4, 15}}}, {4, 15}, 1},
      {"Reshape", {{{3, 4}, 0}, {{2}, -1, {2, 6}}}, {2, 6}, -1},
      {"Reshape", {{{3, 4}, 0}, {{3}, -1, {1, 3, 4}}}, {1, 3, 4}, 1},
      {"Flatten", {{{3, 4, 5}, 0}}, {3, 20}, 0},
      {"Flatten", {{{3, 4, 5}, 0}}, {12, 5}, 0, With({{"axis", int64_t{2}}})},
      {"Squeeze", {{{1, 3, 1}, 1}, {{1}, -1, {0}}}, {3, 1}, 0},
      {"Squeeze", {{{1, 3, 1}, 1}}, {3}, 0},
      {"Unsqueeze", {{{3, 4}, 0}, {{2}, -1, {0, 2}}}, {1, 3, 1, 4}, 1},
      {"Unsqueeze", {{{3, 4}, 0}, {{1}, -1, {-1}}}, {3, 4, 1}, 0},
      {"Expand", {{{3, 1}, 0}, {{3}, -1, {2, 3, 4}}}, {2, 3, 4}, 1},
      {"Trilu", {{{3, 4, 4}, 0}}, {3, 4, 4}, 0},
      {"Trilu", {{{3, 4}, 0}}, {3, 4}, -1},
      {"ReduceSum", {{{3, 4, 5}, 0}, {{1}, -1, {2}}}, {3, 4}, 0, With({{"keepdims", int64_t{0}}})},
      {"ReduceSum", {{{4, 3, 5}, 1}, {{1}, -1, {0}}}, {3, 5}, 0, With({{"keepdims", int64_t{0}}})},
      {"ReduceMean", {{{4, 3, 5}, 1}, {{1}, -1, {0}}}, {1, 3, 5}, 1},
      {"ReduceMean", {{{3, 4}, 0}, {{1}, -1, {-2}}}, {1, 4}, -1},
      {"ReduceMax", {{{3, 4}, 0}}, {1, 1}, -1},
      {"ArgMax", {{{3, 4}, 0}}, {3}, 0, With({{"axis", int64_t{1}}, {"keepdims", int64_t{0}}})},
      {"ArgMax", {{{3, 4}, 0}}, {1, 4}, -1},
      {"Gather", {{{9, 4}}, {{3, 5}, 0}}, {3, 5, 4}, 0},
      {"Gather", {{{2, 9}}, {{3, 5}, 0}}, {2, 3, 5}, 1, With({{"axis", int64_t{1}}})},
      {"Gather", {{{3, 9, 4}, 0}, {{}}}, {3, 4}, 0, With({{"axis", int64_t{1}}})},
      {"Gather", {{{9, 3}, 1}, {{2, 2}}}, {2, 2, 3}, 2},
      {"Gather", {{{3, 4}, 0}, {{2}}}, {2, 4}, -1},
      {"Slice", {{{3, 9}, 0}, {{1}, -1, {1}}, {{1}, -1, {4}}, {{1}, -1, {1}}}, {3, 3}, 0},
      {"Slice", {{{3, 9}, 0}, {{1}, -1, {1}}, {{1}, -1, {3}}, {{1}, -1, {0}}}, {2, 9}, -1},
      {"Slice", {{{3, 9}, 0}, {{1}, -1, {2}}, {{1}, -1, {-9}}, {{1}, -1, {0}}, {{1}, -1, {-1}}}, {3, 9}, -1},
      {"Concat", {{{3, 4}, 0}, {{3, 5}}}, {3, 9}, 0, With({{"axis", int64_t{1}}})},
      {"Concat", {{{3, 4}, 0}, {{3, 4}, 0}}, {6, 4}, -1, With({{"axis", int64_t{0}}})},
      {"Split", {{{3, 4}, 0}}, {3, 2}, 0, With({{"axis", int64_t{1}}})},
      {"Split", {{{4, 3}, 0}}, {2, 3}, -1},
      {"OneHot", {{{3, 5}, 0}, {{1}}, {{2}}}, {3, 5, 7}, 0},
      {"OneHot", {{{3, 5}, 0}, {{1}}, {{2}}}, {7, 3, 5}, 1, With({{"axis", int64_t{0}}})},
      {"Softmax", {{{3, 4}, 0}}, {3, 4}, 0},
      {"Softmax", {{{3, 4}, 0}}, {3, 4}, -1, With({{"axis", int64_t{0}}})},
      {"LayerNormalization", {{{3, 5, 4}, 0}, {{4}}, {{4}}}, {3, 5, 4}, 0},
      {"LayerNormalization",
       {{{5, 3, 4}, 1}, {{3, 4}}, {{3, 4}}},
       {5, 3, 4},
       -1,
       With({{"axis", int64_t{1}}})},
      {"Dropout", {{{3, 4}, 0}}, {3, 4}, 0, {}, kPipecDomain},
      {"SoftmaxCrossEntropyLoss", {{{3, 4}, 0}, {{3}, 0}}, {}, -1},
      {"SoftmaxCrossEntropyLoss",
       {{{3, 4}, 0}, {{3}, 0}},
       {3},
       0,
       With({{"reduction", std::string("none")}})},
      {"CumSum", {{{3, 4}, 0}, {{1}, -1, {1}}}, {3, 4}, 0},
      {"CumSum", {{{3, 4}, 0}, {{1}, -1, {-2}}}, {3, 4}, -1},
      {"Pad", {{{3, 4}, 0}, {{4}, -1, {0, 1, 0, 1}}}, {3, 6}, 0},
      {"Tile", {{{3, 4}, 0}, {{2}, -1, {2, 1}}}, {6, 4}, -1},
      {"Shape", {{{3, 4}, 0}}, {2}, -1},
      {"NoSuchOp", {{{3, 4}, 0}}, {3, 4}, -1},
  };
  for (size_t k = 0; k < std::size(cases); ++k) {
    const Case& c = cases[k];
    GraphBuilder b;
    b.Input({3}, 0);  // tells how many samples there are
    std::vector<Value*> inputs;
    for (const Operand& operand : c.inputs) {
      inputs.push_back(operand.ints.empty() ? b.Input(operand.shape, operand.batch_axis)
                                            : b.Ints(operand.ints));
    }
    Node* node = b.Make(c.op, c.domain, inputs, {c.output}, c.attributes);
    EXPECT_EQ(BatchAxisOf(*node), c.wanted) << c.op << ", row " << k;
  }
}

TEST(BatchAxis, OtherOutputs) {
  GraphBuilder b;
  Node* split = b.Make("Split", "", {b.Input({3, 4}, 0)}, {{3, 1}, {3, 3}}, With({{"axis", int64_t{1}}}));
  EXPECT_EQ(BatchAxisOf(*split, 1), 0);
  Node* norm = b.Make("LayerNormalization", "", {b.Input({2, 3, 4}, 1), b.Input({4})},
                      {{2, 3, 4}, {2, 3, 1}, {2, 3, 1}});
  EXPECT_EQ(BatchAxisOf(*norm, 2), 1);
  EXPECT_EQ(BatchAxisOf(*norm, 3), -1);
}

// Two tensors that differ in one sample only, reshaped: they may differ only in that sample's part of the new
// axis.
TEST(BatchAxis, ReshapeKeepsSamplesApart) {
  std::mt19937 random(5);
  int kept = 0, lost = 0;
  for (int round = 0; round < 2000; ++round) {
    const int64_t samples = 2 + random() % 2;
    Shape in;
    const int rank = 1 + random() % 3, axis = random() % rank;
    for (int i = 0; i < rank; ++i) in.push_back(i == axis ? samples : 1 + random() % 4);
    // A random other factorisation of the same number of elements.
    Shape out;
    for (int64_t rest = NumElements(in); out.size() < 4;) {
      const int64_t dim = 1 + random() % rest;
      if (rest % dim) continue;
      out.push_back(dim);
      rest /= dim;
      if (rest == 1 && random() % 2) break;
      if (out.size() == 4 && rest > 1) out.back() *= rest;
    }
    if (NumElements(out) != NumElements(in)) continue;
    GraphBuilder b;
    Node* node = b.Make("Reshape", "", {b.Input(in, axis), b.Ints({out.begin(), out.end()})}, {out});
    const int result = BatchAxisOf(*node);
    if (result < 0) {
      ++lost;
      continue;
    }
    ++kept;
    const Shape in_strides = Strides(in), out_strides = Strides(out);
    const int64_t per_sample = out[result] / samples;
    ASSERT_EQ(out[result] % samples, 0);
    for (int64_t e = 0; e < NumElements(in); ++e) {
      const int64_t sample = e / in_strides[axis] % in[axis];
      const int64_t place = e / out_strides[result] % out[result];
      ASSERT_EQ(place / per_sample, sample) << ToString(in) << " axis " << axis << " -> " << ToString(out);
    }
  }
  EXPECT_GT(kept, 300);
  EXPECT_GT(lost, 300);
}

// A single sample behind other axes, merged: [L,B,..] may become [L*B,..] or [L,B*..]. Only where the result is
// known to have it, it has it.
TEST(BatchAxis, WhereASingleSampleGoesIsNotGuessed) {
  struct Row {
    Shape in;
    int axis;
    Shape out;
    int wanted;
    int known = -1;
    std::string op = "Reshape";
  };
  const Row rows[] = {
      {{12, 1, 4, 8}, 1, {12, 32}, -1},
      {{12, 1, 4, 8}, 1, {12, 32}, 1, 1},
      {{12, 1, 4, 8}, 1, {12, 32}, -1, 0},
      {{12, 1, 32}, 1, {12, 4, 8}, -1},
      {{12, 1, 32}, 1, {12, 4, 8}, 1, 1},
      {{12, 4, 8}, 1, {12, 32}, -1},  // 4 entries of one sample
      {{12, 1, 32}, 1, {12, 32}, -1, -1, "Flatten"},
      {{12, 1, 4, 8}, 1, {12, 1, 32}, 1},
      {{12, 4, 8}, 1, {12, 1, 4, 8}, 1},
      {{12, 4, 8}, 1, {12, 4, 2, 4}, 1},
      {{2, 6, 1, 8}, 2, {12, 1, 8}, 1},
      {{12, 1, 8}, 1, {96}, -1},
      {{1, 12, 8}, 0, {12, 8}, 0},
      {{1, 12, 8}, 0, {96}, 0},
      {{1, 1, 8}, 1, {1, 8}, 1},
  };
  for (const Row& row : rows) {
    GraphBuilder b;
    b.Input({1}, 0);
    Node* node = b.Make(row.op, "", {b.Input(row.in, row.axis)}, {row.out});
    node->output(0)->batch_axis = row.known;
    EXPECT_EQ(BatchAxisOf(*node), row.wanted) << ToString(row.in) << " -> " << ToString(row.out);
  }
}

}  // namespace
}  // namespace pipec
