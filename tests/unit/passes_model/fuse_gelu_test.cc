// Gelu in any spelling becomes one node; with one number a little off it stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "passes/passes.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

// A random spelling of Gelu(x) as a model's text.
class Spelling {
 public:
  Spelling(uint64_t seed, bool tanh) : random_(seed) {
    const std::string bend =
        Node(tanh ? "Tanh" : "Erf", tanh ? TanhsArgument() : Product({Number(std::sqrt(0.5)), "x"}));
    switch (Draw(3)) {
      case 0:
        result_ = Product({Number(0.5), "x", Sum(Number(1), bend)});
        break;
      case 1:
        result_ = Product({"x", Sum(Number(0.5), Product({Number(0.5), bend}))});
        break;
      default:
        result_ = Sum(Product({Number(0.5), "x"}), Product({Number(0.5), "x", bend}));
    }
  }

  int numbers() const { return static_cast<int>(numbers_.size()); }
  // One of its numbers, unless -1, is 1 % too large.
  std::string Model(int wrong) const {
    std::string constants;
    for (int k = 0; k < numbers(); ++k) {
      absl::StrAppend(&constants, k == 0 ? "" : ", ", "float c", k, " = {",
                      absl::StrFormat("%.9g", numbers_[k] * (k == wrong ? 1.01 : 1)), "}");
    }
    return Text(absl::StrCat("g (float[2,3] x) => (y) <", constants, "> {\n", nodes_, "y = Identity(",
                             result_, ")\n}"));
  }

 private:
  int Draw(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string Number(double value) {
    numbers_.push_back(value);
    return absl::StrCat("c", numbers_.size() - 1);
  }
  std::string Node(absl::string_view op, const std::string& a, const std::string& b = "") {
    const std::string name = absl::StrCat("t", made_++);
    absl::StrAppend(&nodes_, name, " = ", op, "(", a, b.empty() ? "" : ", ", b, ")\n");
    return name;
  }
  std::string Sum(const std::string& a, const std::string& b) {
    if (Draw(5) == 0) return Node("Sub", a, Node("Neg", b));
    return Draw(2) ? Node("Add", a, b) : Node("Add", b, a);
  }
  // Of factors in any order, or divided by the inverse of a number.
  std::string Product(std::vector<std::string> factors) {
    while (factors.size() > 1) {
      std::shuffle(factors.begin(), factors.end(), random_);
      const std::string a = factors.back();
      factors.pop_back();
      std::string& b = factors.back();
      if (b[0] == 'c' && Draw(3) == 0) {
        double& number = numbers_[std::stoi(b.substr(1))];
        number = 1 / number;
        b = Node("Div", a, b);
      } else {
        b = Node("Mul", a, b);
      }
    }
    return factors[0];
  }
  std::string Cube() {
    switch (Draw(3)) {
      case 0:
        return Node("Pow", "x", Number(3));
      case 1:
        return Product({Node("Pow", "x", Number(2)), "x"});
      default:
        return Product({"x", "x", "x"});
    }
  }
  std::string TanhsArgument() {
    const double outer = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
    switch (Draw(3)) {
      case 0:
        return Product({Number(outer), Sum("x", Product({Number(cubic), Cube()}))});
      case 1:
        return Product({Number(outer), "x", Sum(Number(1), Product({Number(cubic), "x", "x"}))});
      default:
        return Sum(Product({Number(outer), "x"}), Product({Number(outer * cubic), Cube()}));
    }
  }

  std::mt19937_64 random_;
  std::vector<double> numbers_;
  std::string nodes_, result_;
  int made_ = 0;
};

// The ops that are left, behind them the form of Gelu.
std::string Fused(const std::string& text) {
  std::unique_ptr<Module> module = Import(text);
  EXPECT_TRUE(EliminateIdentity(*module, {}).ok());
  const auto changed = FuseGelu(*module, {});
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(VerifyModel(*module), absl::OkStatus());
  std::string ops;
  for (const Node* node : module->graph.Nodes())
    absl::StrAppend(&ops, node->op(), " ", node->attributes.String("approximate"));
  EXPECT_EQ(*changed, ops.find("Gelu") != std::string::npos);
  return ops;
}

TEST(FuseGelu, TakesAnySpelling) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const bool tanh = seed % 2;
    const Spelling spelling(seed, tanh);
    ASSERT_EQ(Fused(spelling.Model(-1)), tanh ? "Gelu tanh" : "Gelu ") << spelling.Model(-1);
    const int wrong = static_cast<int>(seed) % spelling.numbers();
    ASSERT_EQ(Fused(spelling.Model(wrong)).find("Gelu"), std::string::npos) << spelling.Model(wrong);
  }
}

}  // namespace
}  // namespace pipec
