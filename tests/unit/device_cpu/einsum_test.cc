// Einsum against a sum over every combination of its labels.
#include <map>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

const std::map<char, int64_t> kDims = {{'i', 3}, {'j', 4}, {'k', 2}, {'l', 5}, {'b', 2}};

std::vector<double> Naive(const std::vector<std::string>& terms, const std::string& result,
                          const std::vector<std::vector<double>>& values) {
  std::string labels;
  for (const std::string& term : terms) {
    for (char c : term) {
      if (labels.find(c) == std::string::npos) labels += c;
    }
  }
  int64_t all = 1, size = 1;
  for (char c : labels) all *= kDims.at(c);
  for (char c : result) size *= kDims.at(c);
  std::vector<double> sums(size);
  for (int64_t i = 0; i < all; ++i) {
    std::map<char, int64_t> at;
    int64_t rest = i;
    for (char c : labels) at[c] = rest % kDims.at(c), rest /= kDims.at(c);
    const auto place = [&](const std::string& term) {
      int64_t place = 0;
      for (char c : term) place = place * kDims.at(c) + at[c];
      return place;
    };
    double product = 1;
    for (size_t k = 0; k < terms.size(); ++k) product *= values[k][place(terms[k])];
    sums[place(result)] += product;
  }
  return sums;
}

Shape ShapeOf(const std::string& term) {
  Shape shape;
  for (char c : term) shape.push_back(kDims.at(c));
  return shape;
}

class EinsumTest : public ::testing::TestWithParam<DType> {};

TEST_P(EinsumTest, IsTheSumOverAllLabels) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"ij", "jk"}, "ik"},
      {{"bij", "bjk"}, "bik"},
      {{"bij", "bkj"}, "kbi"},
      {{"ij"}, "ji"},
      {{"ijk"}, "j"},
      {{"ii"}, "i"},
      {{"iij"}, "j"},
      {{"ij", "kl"}, "jkil"},
      {{"ij", "jk", "kl"}, "il"},
      {{"ij", "kl"}, ""},
      {{"bi", "bi"}, "b"},
      {{"ij", "i", "j"}, ""},
      {{"bijk", "bl"}, "blj"},
      {{"ijl", "jkl"}, "ik"},
      {{"i", "i", "i", "i"}, "i"},
      {{""}, ""},
  };
  for (const auto& [terms, result] : cases) {
    KernelCall call("Einsum", "");
    std::string equation;
    std::vector<std::vector<double>> values;
    for (const std::string& term : terms) {
      equation += (values.empty() ? "" : ", ") + term;
      const Tensor operand = Random(GetParam(), ShapeOf(term), static_cast<int>(values.size()));
      values.push_back(Values(operand));
      call.In(operand);
    }
    call.Attr("equation", equation + " -> " + result).Out(GetParam(), ShapeOf(result));
    ExpectNear(call.Get(), Naive(terms, result, values), Tolerance(GetParam()), equation + "->" + result);
    const std::string alone = call.Bytes();
    EXPECT_EQ(alone, call.Threads(3).Bytes()) << "the number of threads shows";
  }
}

TEST_P(EinsumTest, AnEllipsisBroadcastsAndAnImplicitResultIsInOrder) {
  const Tensor a = Random(GetParam(), {2, 1, 3, 4}, 1), b = Random(GetParam(), {5, 4, 2}, 2);
  KernelCall call("Einsum", ""), product("MatMul", "");
  call.Attr("equation", std::string("...ij,...jk")).In(a).In(b).Out(GetParam(), {2, 5, 3, 2});
  product.In(a).In(b).Out(GetParam(), {2, 5, 3, 2});
  ExpectNear(call.Get(), product.Get(), Tolerance(GetParam()));
}

TEST_P(EinsumTest, WhatIsNoEquationIsRefused) {
  const auto error = [](const std::string& equation) {
    KernelCall call("Einsum", "");
    call.Attr("equation", equation).In(Random(GetParam(), {2, 3}, 1)).In(Random(GetParam(), {3, 4}, 2));
    return call.Out(GetParam(), {2, 4}).Error();
  };
  EXPECT_THAT(error("ij->i"), ::testing::HasSubstr("is for 1 operand,"));
  EXPECT_THAT(error("ij,j1->i"), ::testing::HasSubstr("'j1' is no term"));
  EXPECT_THAT(error("ijk,jk->i"), ::testing::HasSubstr("operand 0"));
  EXPECT_THAT(error("ij,ik->jk"), ::testing::HasSubstr("axis 0 of operand 1 is 3"));
  EXPECT_THAT(error("ij,jk->iz"), ::testing::HasSubstr("is not there"));
  EXPECT_THAT(error("ij,jk->ii"), ::testing::HasSubstr("twice"));
  EXPECT_THAT(error("ij,jk->ik->k"), ::testing::HasSubstr("equation"));
}

INSTANTIATE_TEST_SUITE_P(Floats, EinsumTest, ::testing::Values(DType::kFloat32, DType::kFloat64));

}  // namespace
}  // namespace pipec
