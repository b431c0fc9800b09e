#include "compiler/cost/fitted_costs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

struct Law {
  double a_byte, a_flop, once;
  double At(const NodeCost& cost) const { return a_byte * cost.bytes + a_flop * cost.flops + once; }
};
constexpr Law kMachine{1e-10, 2e-11, 3e-6};

// Nodes without a time yet.
MeasuredNode Product(int64_t rows, int64_t inner, int64_t columns, const char* attributes = "") {
  return {absl::StrCat("MatMul", attributes, "(float32[", rows, ",", inner, "],float32[", inner, ",", columns,
                       "])->float32[", rows, ",", columns, "]"),
          {2.0 * rows * inner * columns, 4.0 * (rows * inner + inner * columns + rows * columns)}};
}

MeasuredNode Softmax(int64_t rows, int64_t columns) {
  return {
      absl::StrCat("Softmax[axis=-1](float32[", rows, ",", columns, "])->float32[", rows, ",", columns, "]"),
      {5.0 * rows * columns, 8.0 * rows * columns}};
}

MeasuredNode Taking(MeasuredNode node, const Law& law, double factor = 1) {
  node.seconds = factor * law.At(node.cost);
  return node;
}

std::vector<MeasuredNode> Products(const Law& law) {
  std::vector<MeasuredNode> nodes;
  for (const int64_t rows : {4, 16, 64}) {
    nodes.push_back(Taking(Product(rows, 512, 512), law));
    nodes.push_back(Taking(Product(rows, 512, 2048), law));
  }
  return nodes;
}

double Ratio(const FittedCosts& fitted, const MeasuredNode& node, const Law& law) {
  return *fitted.Seconds(node.key, node.cost) / law.At(node.cost);
}

TEST(FittedCosts, ALawIsRecovered) {
  const FittedCosts fitted(Products(kMachine));
  EXPECT_NEAR(Ratio(fitted, Product(32, 512, 512), kMachine), 1, 1e-6);
  EXPECT_NEAR(Ratio(fitted, Product(1, 32, 32), kMachine), 1, 1e-6) << "below what was measured";
  EXPECT_NEAR(Ratio(fitted, Product(1000, 8000, 8000), kMachine), 1, 1e-6) << "beyond what was measured";
}

TEST(FittedCosts, AClassHasItsLaw) {
  std::vector<MeasuredNode> nodes = Products(kMachine);
  // Another op takes ten times as long; that is its own affair, but for what its nodes leave open.
  const Law slow{1e-9, 0, 1e-4};
  for (const int64_t rows : {1, 8, 64}) nodes.push_back(Taking(Softmax(rows, 256), slow));
  const FittedCosts fitted(nodes);
  EXPECT_NEAR(Ratio(fitted, Product(32, 512, 512), kMachine), 1, 1e-3);
  EXPECT_NEAR(Ratio(fitted, Product(1000, 8000, 8000), kMachine), 1, 1e-3);
  EXPECT_NEAR(Ratio(fitted, Softmax(4096, 256), slow), 1, 5e-3);
}

TEST(FittedCosts, ElementTypesAreOtherClasses) {
  std::vector<MeasuredNode> nodes = Products(kMachine);
  const Law slow{3e-10, 9e-11, 1e-5};
  auto in_half = [](MeasuredNode node) {
    for (size_t at; (at = node.key.find("float32")) != std::string::npos;) node.key.replace(at, 7, "float16");
    node.cost.bytes /= 2;
    return node;
  };
  for (const int64_t rows : {4, 16, 64}) nodes.push_back(Taking(in_half(Product(rows, 512, 512)), slow));
  const FittedCosts fitted(nodes);
  EXPECT_NEAR(Ratio(fitted, Product(32, 512, 512), kMachine), 1, 1e-3);
  EXPECT_NEAR(Ratio(fitted, in_half(Product(32, 512, 512)), slow), 1, 0.05);
  EXPECT_GT(Ratio(fitted, in_half(Product(32, 512, 512)), kMachine), 2);
}

TEST(FittedCosts, WithLittleOfAClassTheLawOfAllIsScaled) {
  std::vector<MeasuredNode> nodes = Products(kMachine);
  // Two nodes; and three whose sizes hardly differ.
  for (const int64_t rows : {8, 9}) nodes.push_back(Taking(Softmax(rows, 256), kMachine));
  EXPECT_NEAR(Ratio(FittedCosts(nodes), Softmax(1024, 256), kMachine), 1, 1e-6);
  EXPECT_NEAR(Ratio(FittedCosts(Products(kMachine)), Softmax(1024, 256), kMachine), 1, 1e-6) << "none at all";
  nodes.push_back(Taking(Softmax(10, 256), kMachine));
  for (size_t k = nodes.size() - 3; k < nodes.size(); ++k) nodes[k].seconds *= 3;
  const FittedCosts fitted(nodes);
  EXPECT_NEAR(Ratio(fitted, Softmax(9, 256), kMachine), 3, 1e-6);
  EXPECT_NEAR(Ratio(fitted, Softmax(12, 256), kMachine), 3, 0.3) << "scaled as those most alike";
}

TEST(FittedCosts, TheLawOfAllDecidesWhatAClassLeavesOpen) {
  // Of one length summed over, flops and bytes of the products with 32 rows grow together: their own times say
  // nothing of others.
  std::vector<MeasuredNode> nodes;
  for (const int64_t columns : {64, 256, 1024}) nodes.push_back(Taking(Product(32, 128, columns), kMachine));
  for (const int64_t rows : {8, 64, 512}) {
    nodes.push_back(Taking(Softmax(rows, 256), kMachine));
    nodes.push_back(Taking(
        {absl::StrCat("Conv(float32[", rows, ",64])->float32[1]"), {1e6 * rows, 100.0 * rows}}, kMachine));
  }
  EXPECT_NEAR(Ratio(FittedCosts(nodes), Product(2048, 4, 2048), kMachine), 1, 1e-3);
  nodes.resize(3);
  EXPECT_GT(std::abs(Ratio(FittedCosts(nodes), Product(2048, 4, 2048), kMachine) - 1), 0.1);
}

TEST(FittedCosts, TheNodeMostAlikeSaysWhereTheLawStands) {
  std::vector<MeasuredNode> nodes = Products(kMachine);
  const FittedCosts even(nodes);
  // A layer of another width, slower by half than the law of the others, and a transposed one that is twice as fast.
  nodes.push_back(Taking(Product(16, 384, 1536), kMachine, 1.5));
  nodes.push_back(Taking(Product(16, 384, 1536, "[trans_a=1]"), kMachine, 0.5));
  const FittedCosts fitted(nodes);
  const MeasuredNode more = Product(32, 384, 1536), transposed = Product(32, 384, 1536, "[trans_a=1]");
  EXPECT_NEAR(Ratio(fitted, more, kMachine), 1.5, 0.1);
  EXPECT_NEAR(Ratio(fitted, transposed, kMachine), 0.5, 0.05);
  EXPECT_NEAR(Ratio(fitted, Product(32, 512, 512), kMachine), 1, 0.05);
  // Of other ranks none is alike: all of the class together.
  MeasuredNode batched = Product(32, 512, 512);
  batched.key = "MatMul(float32[2,16,512],float32[512,512])->float32[2,16,512]";
  EXPECT_NEAR(Ratio(even, batched, kMachine), 1, 1e-6);
  for (MeasuredNode& node : nodes) node.seconds *= 7;
  EXPECT_NEAR(Ratio(FittedCosts(nodes), batched, kMachine), 7 * Ratio(fitted, batched, kMachine), 1e-6);
}

TEST(FittedCosts, GrowNeitherDownNorFasterThanTheWork) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> noise(0, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<MeasuredNode> nodes;
    std::set<std::string> keys;
    for (int k = 0; k < 12; ++k) {
      const int64_t rows = 1 + random() % 64, width = 16 << random() % 4;
      MeasuredNode node = k % 3 ? Product(rows, width, 64) : Softmax(rows, width);
      if (keys.insert(node.key).second) nodes.push_back(Taking(node, kMachine, noise(random)));
    }
    const FittedCosts fitted(nodes);
    for (MeasuredNode node : nodes) {
      const double now = *fitted.Seconds(node.key, node.cost);
      EXPECT_NEAR(now / node.seconds, 1, 1e-9) << "where it was measured, it is what was measured";
      for (const double factor : {2.0, 100.0}) {
        const double then = *fitted.Seconds(node.key, {node.cost.flops * factor, node.cost.bytes * factor});
        EXPECT_GE(then, now * (1 - 1e-9));
        EXPECT_LE(then, now * factor * (1 + 1e-9));
      }
    }
  }
}

TEST(FittedCosts, TheirOrderDoesNotMatter) {
  std::vector<MeasuredNode> nodes = Products(kMachine);
  for (size_t k = 0; k < nodes.size(); ++k) nodes[k].seconds *= 1 + 0.1 * (k % 3);
  const MeasuredNode asked = Product(7, 300, 900);
  const double seconds = *FittedCosts(nodes).Seconds(asked.key, asked.cost);
  std::reverse(nodes.begin(), nodes.end());
  EXPECT_NEAR(*FittedCosts(nodes).Seconds(asked.key, asked.cost) / seconds, 1, 1e-9);
}

TEST(FittedCosts, OfNothingNothing) {
  const MeasuredNode node = Softmax(4, 4);
  EXPECT_EQ(FittedCosts().Seconds(node.key, node.cost), std::nullopt);
  EXPECT_EQ(FittedCosts(std::vector<MeasuredNode>{node}).Seconds(node.key, node.cost), std::nullopt)
      << "the clock saw nothing of it";
}

}  // namespace
}  // namespace pipec
