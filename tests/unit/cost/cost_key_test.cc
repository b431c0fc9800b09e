#include "runtime/base/cost_key.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CostKey, SaysWhatTheTimeDependsOn) {
  Attributes attributes;
  attributes.Set("pads", std::vector<int64_t>{0, 1});
  attributes.Set("axis", int64_t{-1});
  attributes.Set("mode", std::string("same"));
  const TensorType big{DType::kFloat32, {2, 3}}, small{DType::kInt64, {}};
  const std::string key = CostKey("ai.pipec", "Op", attributes, {big, {}, small}, {small});
  EXPECT_EQ(key, "ai.pipec.Op[axis=-1,mode=same,pads=0:1](float32[2,3],-,int64[])->int64[]");
  Attributes same = attributes;
  same.Set("key", int64_t{17});
  same.Set("parameter", int64_t{3});
  same.Set("epsilon", 1e-5f);
  EXPECT_EQ(CostKey("ai.pipec", "Op", same, {big, {}, small}, {small}), key);
  Attributes other = attributes;
  other.Set("axis", int64_t{0});
  EXPECT_NE(CostKey("ai.pipec", "Op", other, {big, {}, small}, {small}), key);
  EXPECT_EQ(CostKey("", "Relu", {}, {big}, {big}), "Relu(float32[2,3])->float32[2,3]");
}

TEST(CostKey, IsTakenApart) {
  Attributes attributes;
  attributes.Set("equation", std::string("ij,(j)->[k7]"));
  attributes.Set("axis", int64_t{3});
  const TensorType big{DType::kFloat32, {20, 3}}, small{DType::kInt64, {}}, empty{DType::kBool, {0}};
  const CostKeyParts parts =
      SplitCostKey(CostKey("ai.pipec", "Op", attributes, {big, {}, small}, {big, empty}));
  EXPECT_EQ(parts.op_and_dtypes, "ai.pipec.Op(float32,-,int64)->float32,bool");
  EXPECT_EQ(parts.attributes, "[axis=3,equation=ij,(j)->[k7]]");
  EXPECT_EQ(parts.ranks, "([,],-,[])->[,],[]");
  EXPECT_THAT(parts.dims, ElementsAre(20, 3, 20, 3, 0));
  const CostKeyParts plain = SplitCostKey("Relu(float32[2,3])->float32[2,3]");
  EXPECT_EQ(plain.op_and_dtypes, "Relu(float32)->float32");
  EXPECT_EQ(plain.attributes, "");
  EXPECT_THAT(plain.dims, ElementsAre(2, 3, 2, 3));
}

TEST(CostKey, OfAnyTextSomeParts) {
  EXPECT_EQ(SplitCostKey("").op_and_dtypes, "");
  EXPECT_EQ(SplitCostKey("none").op_and_dtypes, "none");
  EXPECT_THAT(SplitCostKey("none[4]").dims, IsEmpty());
  EXPECT_EQ(SplitCostKey("x([99999999999999999999999999999])").dims.size(), 1u);
  EXPECT_THAT(SplitCostKey("x([1y2").dims, ElementsAre(1, 2));
}

}  // namespace
}  // namespace pipec
