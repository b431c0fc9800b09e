// Einsum. The gradient of an operand is the sum of products of dY and the other operands that leaves the operand's
// labels; what only the operand has was summed over, so that the gradient is the same along it. A diagonal, a label
// that an operand has twice, gets an identity matrix between its two axes. Axes of "..." get labels of their own.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

constexpr absl::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct Equation {
  std::vector<std::string> terms;  // a letter for each axis
  std::string result;
  std::string used;  // letters

  // A letter that is not used yet.
  char Fresh(GradientBuilder& b) {
    const size_t free = kLetters.find_first_not_of(used);
    if (free == absl::string_view::npos) {
      b.Fail(absl::UnimplementedError("an equation with more than 52 labels"));
      return kLetters[0];
    }
    used += kLetters[free];
    return kLetters[free];
  }
};

// Without an arrow the result has the axes of "..." and then the labels that occur once, in alphabetical order.
Equation Parse(GradientBuilder& b) {
  const std::string text =
      absl::StrReplaceAll(b.forward()->attributes.String("equation", ""), {{" ", ""}, {"...", "."}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  Equation equation{absl::StrSplit(sides[0], ',')};
  equation.used = text;
  std::string dots;  // "..." stands for as many axes in every operand that has it
  for (int i = 0; i < equation.terms.size(); ++i) {
    const std::string& term = equation.terms[i];
    if (term.find('.') == std::string::npos) continue;
    while (dots.size() + term.size() - 1 < b.input(i)->type.shape.size()) dots += equation.Fresh(b);
  }
  if (sides.size() > 1) {
    equation.result = absl::StrReplaceAll(sides[1], {{".", dots}});
  } else {
    equation.result = dots;
    for (char letter : kLetters) {
      if (std::count(sides[0].begin(), sides[0].end(), letter) == 1) equation.result += letter;
    }
  }
  for (std::string& term : equation.terms) term = absl::StrReplaceAll(term, {{".", dots}});
  return equation;
}

// What the gradient of operand `i` is a product of.
struct Factors {
  std::vector<std::string> terms;
  std::vector<Value*> operands;
  std::map<char, int64_t> sizes;  // the largest, as an axis of 1 is broadcast

  void Add(const std::string& term, Value* operand) {
    terms.push_back(term);
    operands.push_back(operand);
    if (!operand) return;
    for (int k = 0; k < term.size(); ++k) {
      int64_t& size = sizes.emplace(term[k], 1).first->second;
      size = std::max(size, operand->type.shape[k]);
    }
  }
};

std::vector<Value*> Einsum(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  std::vector<Value*> gradients(wanted.size());
  const Equation equation = Parse(b);
  for (int i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    Equation own = equation;
    Factors factors;
    factors.Add(equation.result, dy[0]);
    for (int k = 0; k < wanted.size(); ++k) {
      if (k != i) factors.Add(equation.terms[k], b.input(k));
    }
    const Shape& shape = b.input(i)->type.shape;
    std::string& term = own.terms[i];
    for (int k = 0; k < shape.size(); ++k) {
      const char label = term[k];
      if (term.find(label) == k) continue;
      term[k] = own.Fresh(b);
      Value* identity = b.Emit("EyeLike", {b.Zeros({dy[0]->type.dtype, {shape[k], shape[k]}})});
      factors.Add({label, term[k]}, identity);
    }
    std::string kept;
    Shape with_ones;
    for (int k = 0; k < shape.size(); ++k) {
      const auto known = factors.sizes.find(term[k]);
      // What is broadcast along a label of the others is summed over it.
      const bool there = known != factors.sizes.end() && (known->second == shape[k] || known->second == 1);
      if (there) kept += term[k];
      with_ones.push_back(there ? known->second : 1);
    }
    Attributes attributes;
    attributes.Set("equation", absl::StrCat(absl::StrJoin(factors.terms, ","), "->", kept));
    Value* dx = b.Reshape(b.Emit("Einsum", std::move(factors.operands), std::move(attributes)), with_ones);
    gradients[i] = with_ones == shape ? dx : b.Emit("Expand", {dx, b.Ints(shape)});
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"Einsum", "", Einsum}};

}  // namespace

absl::Span<const GradientRuleEntry> EinsumRules() { return kRules; }

}  // namespace pipec
