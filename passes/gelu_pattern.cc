#include "passes/gelu_pattern.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "absl/algorithm/container.h"
#include "passes/constant_elements.h"

namespace pipec {
namespace {

constexpr int kMostNodes = 32;       // that an expression is looked at for
constexpr double kTolerance = 1e-5;  // of factors, which exporters round to float32 or to some digits

// Coefficients of 1, x, x^2, x^3.
using Polynomial = std::array<double, 4>;

bool IsNear(const Polynomial& a, const Polynomial& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!(std::abs(a[k] - b[k]) <= kTolerance * std::max(std::abs(b[k]), 1e-2))) return false;
  }
  return true;
}
bool IsZero(const Polynomial& p) {
  return absl::c_all_of(p, [](double c) { return c == 0; });
}

Polynomial Sum(const Polynomial& a, const Polynomial& b, double factor) {
  Polynomial sum = a;
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += factor * b[k];
  return sum;
}

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product{};
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      if (a[i] == 0 || b[k] == 0) continue;
      if (i + k >= product.size()) return std::nullopt;
      product[i + k] += a[i] * b[k];
    }
  }
  return product;
}

// free + times * bend, polynomials of x.
struct Expression {
  Polynomial free{}, times{};
};

std::optional<Expression> Product(const Expression& a, const Expression& b) {
  if (!IsZero(a.times) && !IsZero(b.times)) return std::nullopt;
  const auto free = Product(a.free, b.free), one = Product(a.times, b.free), other = Product(a.free, b.times);
  if (!free || !one || !other) return std::nullopt;
  return Expression{*free, Sum(*one, *other, 1)};
}

// Reads values as expressions of x and of the result of `bend`, and remembers the nodes on the way.
class Reader {
 public:
  Reader(const Value* x, const Value* bend) : x_(x), bend_(bend) {}

  std::optional<Expression> Read(const Value* value) {
    if (value == x_) return Expression{{0, 1, 0, 0}, {}};
    if (value == bend_) return Expression{{}, {1, 0, 0, 0}};
    if (const auto number = Number(value)) return Expression{{*number, 0, 0, 0}, {}};
    Node* const node = value ? value->producer() : nullptr;
    if (!node || !node->domain().empty() || ++looked_at_ > kMostNodes) return std::nullopt;
    if (!absl::c_linear_search(nodes_, node)) nodes_.push_back(node);
    if (node->op() == "Neg") {
      const auto a = Read(node->input(0));
      return a ? Product(*a, Expression{{-1, 0, 0, 0}, {}}) : std::nullopt;
    }
    if (node->op() == "Pow") return Power(Read(node->input(0)), Number(node->input(1)));
    if (node->op() == "Div") {
      const auto a = Read(node->input(0));
      const auto number = Number(node->input(1));
      if (!a || !number || *number == 0) return std::nullopt;
      return Product(*a, Expression{{1 / *number, 0, 0, 0}, {}});
    }
    if (node->op() != "Add" && node->op() != "Sub" && node->op() != "Mul") return std::nullopt;
    const auto a = Read(node->input(0));
    const auto b = a ? Read(node->input(1)) : std::nullopt;
    if (!b) return std::nullopt;
    if (node->op() == "Mul") return Product(*a, *b);
    const double sign = node->op() == "Add" ? 1 : -1;
    return Expression{Sum(a->free, b->free, sign), Sum(a->times, b->times, sign)};
  }

  const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  static std::optional<Expression> Power(const std::optional<Expression>& base,
                                         std::optional<double> exponent) {
    if (!base || (exponent != 2 && exponent != 3)) return std::nullopt;
    auto power = Product(*base, *base);
    if (power && exponent == 3) power = Product(*power, *base);
    return power;
  }

  const Value *const x_, *const bend_;
  std::vector<Node*> nodes_;
  int looked_at_ = 0;
};

// Values that may be x: those that the argument is made of.
void Candidates(Value* value, std::vector<Value*>& found) {
  if (!value || Number(value) || found.size() >= kMostNodes || absl::c_linear_search(found, value)) return;
  found.push_back(value);
  const Node* const node = value->producer();
  if (!node) return;
  for (absl::string_view op : {"Add", "Sub", "Mul", "Div", "Pow", "Neg"}) {
    if (!node->Is(op)) continue;
    for (Value* input : node->inputs()) Candidates(input, found);
  }
}

// x of erf's or tanh's argument; null if the argument is none of Gelu's.
Value* ArgumentOf(const Node& bend) {
  const double outer = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Polynomial wanted = bend.Is("Tanh") ? Polynomial{0, outer, 0, outer * 0.044715}
                                            : Polynomial{0, 1 / std::numbers::sqrt2, 0, 0};
  std::vector<Value*> candidates;
  Candidates(bend.input(0), candidates);
  for (Value* x : candidates) {
    const auto argument = Reader(x, nullptr).Read(bend.input(0));
    if (argument && IsZero(argument->times) && IsNear(argument->free, wanted)) return x;
  }
  return nullptr;
}

}  // namespace

std::optional<GeluPattern> FindGelu(Node* bend, const std::vector<Value*>& outputs) {
  Value* const x = ArgumentOf(*bend);
  if (!x) return std::nullopt;
  const Polynomial half = {0, 0.5, 0, 0};
  for (Value* value = bend->output(0); value->uses().size() == 1 && !absl::c_linear_search(outputs, value);) {
    Node* const user = value->uses()[0].node;
    value = user->output(0);
    Reader reader(x, bend->output(0)), argument(x, nullptr);
    const auto expression = reader.Read(value);
    if (!expression) return std::nullopt;
    if (!IsNear(expression->free, half) || !IsNear(expression->times, half)) continue;
    if (value->type != x->type) return std::nullopt;
    argument.Read(bend->input(0));
    std::vector<Node*> nodes = {bend};
    for (const Reader* part : {&reader, &argument})
      nodes.insert(nodes.end(), part->nodes().begin(), part->nodes().end());
    absl::c_sort(nodes, [](const Node* a, const Node* b) { return a->index > b->index; });
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    GeluPattern found{x, user, bend->Is("Tanh"), {}};
    for (Node* node : nodes) {
      if (node == user) continue;
      found.gone.push_back(node);
      const bool inside = absl::c_all_of(
          node->output(0)->uses(), [&](const Use& use) { return absl::c_linear_search(nodes, use.node); });
      if (!inside || absl::c_linear_search(outputs, node->output(0))) return std::nullopt;
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace pipec
