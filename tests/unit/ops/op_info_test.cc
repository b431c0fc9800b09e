#include "compiler/ops/op_info.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/unit/ops/graph_builder.h"

namespace pipec {
namespace {

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(seen.insert({std::string(info.op), std::string(info.domain)}).second) << info.op;
    EXPECT_EQ(FindOp(info.op, info.domain), &info);
  }
  EXPECT_EQ(FindOp("Conv", "ai.pipec"), nullptr);
  EXPECT_EQ(FindOp("TanhGrad", ""), nullptr);
}

TEST(OpTable, EveryRowHasAKernelUnlessItNeedsNone) {
  for (const OpInfo& info : AllOps()) {
    const bool none = info.alias == Alias::kView || info.op == "Message" || info.op == "Constant" ||
                      (info.op == "Dropout" && info.domain.empty()) || info.op == "SoftmaxCrossEntropyLoss" ||
                      info.op == "NegativeLogLikelihoodLoss" || info.op == "Gradient";
    EXPECT_TRUE(none || HasKernel("cpu", info.op, info.domain)) << info.op;
  }
  EXPECT_FALSE(HasKernel("cpu", "NoSuchOp", ""));
  EXPECT_FALSE(HasKernel("tpu", "MatMul", ""));
}

TEST(Cost, CountsFlopsAndBytes) {
  GraphBuilder b;
  // 2 x 3 products of length 4 for each of 5 batches.
  NodeCost matmul = CostOf(*b.Make("MatMul", "", {b.Input({5, 2, 4}), b.Input({4, 3})}, {{5, 2, 3}}));
  EXPECT_EQ(matmul.flops, 2 * 5 * 2 * 3 * 4);
  EXPECT_EQ(matmul.bytes, 4 * (5 * 2 * 4 + 4 * 3 + 5 * 2 * 3));
  EXPECT_EQ(CostOf(*b.Make("FusedMatMul", kPipecDomain, {b.Input({4, 2}), b.Input({4, 3})}, {{2, 3}},
                           With({{"trans_a", int64_t{1}}})))
                .flops,
            2 * 2 * 3 * 4);
  // Two products and 8 operations for each of 7 x 5 x 3 weights; of a causal one for 7 x (1 + 2 + 3 + 4 + 5).
  EXPECT_EQ(CostOf(*b.Make("FusedAttention", kPipecDomain, {b.Input({7, 5, 4}), b.Input({7, 3, 4}), b.Input({7, 3, 6})},
                           {{7, 5, 6}}))
                .flops,
            7 * 5 * 3 * (2 * 4 + 2 * 6 + 8));
  EXPECT_EQ(CostOf(*b.Make("FusedAttention", kPipecDomain, {b.Input({7, 5, 4}), b.Input({7, 5, 4}), b.Input({7, 5, 6})},
                           {{7, 5, 6}}, With({{"causal", int64_t{1}}})))
                .flops,
            7 * 15 * (2 * 4 + 2 * 6 + 8));
  // The way back makes the weights again: five products.
  EXPECT_EQ(CostOf(*b.Make("FusedAttentionGrad", kPipecDomain,
                           {b.Input({7, 5, 6}), b.Input({7, 5, 4}), b.Input({7, 3, 4}), b.Input({7, 3, 6}),
                            b.Input({7, 5, 6}), b.Input({7, 5})},
                           {{7, 5, 4}, {7, 3, 4}, {7, 3, 6}}))
                .flops,
            7 * 5 * 3 * (3 * 2 * 4 + 2 * 2 * 6 + 8));
  EXPECT_EQ(CostOf(*b.Make("Gemm", "", {b.Input({4, 2}), b.Input({4, 3}), b.Input({3})}, {{2, 3}},
                           With({{"transA", int64_t{1}}})))
                .flops,
            2 * 2 * 3 * 4 + 2 * 3);
  EXPECT_EQ(
      CostOf(*b.Make("FusedMatMul", kPipecDomain, {b.Input({2, 4}), b.Input({4, 3}), b.Input({3})}, {{2, 3}}))
          .flops,
      2 * 2 * 3 * 4 + 2 * 3);
  EXPECT_EQ(CostOf(*b.Make("FusedMatMul", kPipecDomain, {b.Input({2, 4}), b.Input({4, 3}), b.Input({3})}, {{2, 3}},
                           With({{"activation", std::string("GeluTanh")}})))
                .flops,
            2 * 2 * 3 * 4 + 2 * 3 + 8 * 2 * 3);
  EXPECT_EQ(CostOf(*b.Make("MatMulWeightGrad", kPipecDomain, {b.Input({8, 3}), b.Input({8, 4})}, {{4, 3}, {3}})).flops,
            2 * 8 * 3 * 4 + 8 * 3);
  // Rows that are added where they belong, of a sum of 1000.
  const Node& rows = *b.Make("GatherGrad", kPipecDomain, {b.Input({2, 3}), b.Ints({6, 7}), b.Input({1000, 3})},
                             {{1000, 3}}, With({{"accumulate", int64_t{1}}}));
  EXPECT_EQ(CostOf(rows).bytes, 3 * 24 + 16);
  EXPECT_EQ(CostOf(*b.Make("Add", "", {b.Input({2, 3}), b.Input({3})}, {{2, 3}})).flops, 6);
  EXPECT_EQ(CostOf(*b.Make("ReduceSum", "", {b.Input({2, 3})}, {{1, 1}})).flops, 6);
  // A view costs nothing, a gather only what it picks.
  EXPECT_EQ(CostOf(*b.Make("Reshape", "", {b.Input({2, 3}), b.Ints({6})}, {{6}})).bytes, 0);
  EXPECT_EQ(CostOf(*b.Make("Gather", "", {b.Input({1000, 3}), b.Ints({6, 7})}, {{2, 3}})).bytes, 2 * 24 + 16);
  EXPECT_EQ(CostOf(*b.Make("NoSuchOp", "", {b.Input({2, 3})}, {{2, 3}})).bytes, 48);
  EXPECT_EQ(CostOf(*b.Make("Message", kPipecDomain, {b.Input({2, 3})}, {{2, 3}})).bytes, 0);
}

TEST(Aliases, StateLiesWhereItLay) {
  GraphBuilder b;
  const auto input = [&] { return b.Input({3}); };
  const Node& adam = *b.Make("Adam", kPipecDomain, {input(), input(), input(), input(), input()},
                             {{3}, {3}, {3}});  // (p, g, m, v, scale) -> (p', m', v')
  EXPECT_EQ(AliasOf(adam), Alias::kSameMemory);
  EXPECT_EQ(AliasInput(adam, 0), 0);
  EXPECT_EQ(AliasInput(adam, 1), 2);
  EXPECT_EQ(AliasInput(adam, 2), 3);
  EXPECT_EQ(AliasInput(*b.Make("Accumulate", kPipecDomain, {input(), input()}, {{3}}), 0), 0);
  EXPECT_EQ(AliasInput(*b.Make("Where", "", {input(), input(), input()}, {{3}}), 0), 1);
  EXPECT_EQ(FindOp("Softmax", "")->alias, Alias::kNone);
}

TEST(Aliases, ResultsLieOnTheSumsThatTheyAreAddedTo) {
  GraphBuilder b;
  const auto make = [&](Attributes attributes) {
    return b.Make("MatMulWeightGrad", kPipecDomain,
                  {b.Input({8, 3}), b.Input({8, 4}), b.Input({4, 3}), b.Input({3})}, {{4, 3}, {3}}, attributes);
  };
  const Node& plain = *make({});
  EXPECT_EQ(AliasOf(plain), Alias::kNone);
  const Node& adding = *make(With({{"accumulate", int64_t{1}}}));
  EXPECT_EQ(AliasOf(adding), Alias::kSameMemory);
  EXPECT_EQ(AliasInput(adding, 0), 2);
  EXPECT_EQ(AliasInput(adding, 1), 3);
  EXPECT_TRUE(CanAccumulate("MatMulWeightGrad", kPipecDomain));
  EXPECT_FALSE(CanAccumulate("MatMulWeightGrad", ""));
  EXPECT_FALSE(CanAccumulate("Adam", kPipecDomain));
}

}  // namespace
}  // namespace pipec
