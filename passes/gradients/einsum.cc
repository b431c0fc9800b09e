// Einsum. The gradient of an operand is the sum of products of dY and the other operands that leaves the operand's
// labels; what only the operand has was summed over, so that the gradient is the same along it.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

// Without an arrow the result has the labels that occur once, in alphabetical order.
Equation Parse(const std::string& text) {
  const std::vector<std::string> sides = absl::StrSplit(absl::StrReplaceAll(text, {{" ", ""}}), "->");
  Equation equation{absl::StrSplit(sides[0], ',')};
  if (sides.size() > 1) {
    equation.result = sides[1];
    return equation;
  }
  std::map<char, int> counts;
  for (char c : sides[0]) counts[c] += c != ',';
  for (const auto& [label, count] : counts) {
    if (count == 1) equation.result += label;
  }
  return equation;
}

bool HasTwice(std::string labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}

// Unimplemented for broadcast axes (...), diagonals and sizes of 1 against others.
absl::Status Check(GradientBuilder& b, const Equation& equation) {
  std::map<char, int64_t> sizes;
  for (int i = 0; i < equation.terms.size(); ++i) {
    const std::string& labels = equation.terms[i];
    const Shape& shape = b.input(i)->type.shape;
    if (labels.find('.') != std::string::npos || HasTwice(labels) || labels.size() != shape.size())
      return absl::UnimplementedError(
          absl::StrCat("term '", labels, "'; wanted every axis by a label of its own"));
    for (int k = 0; k < labels.size(); ++k) {
      if (sizes.emplace(labels[k], shape[k]).first->second != shape[k])
        return absl::UnimplementedError(absl::StrCat("label ", std::string(1, labels[k]), " has two sizes"));
    }
  }
  return absl::OkStatus();
}

std::vector<Value*> Einsum(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  std::vector<Value*> gradients(wanted.size());
  const Equation equation = Parse(b.forward()->attributes.String("equation", ""));
  if (absl::Status status = Check(b, equation); !status.ok()) {
    b.Fail(std::move(status));
    return gradients;
  }
  for (int i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    std::vector<std::string> terms = {equation.result};
    std::vector<Value*> operands = {dy[0]};
    for (int k = 0; k < wanted.size(); ++k) {
      if (k == i) continue;
      terms.push_back(equation.terms[k]);
      operands.push_back(b.input(k));
    }
    const std::string known = absl::StrJoin(terms, ",");
    const Shape& shape = b.input(i)->type.shape;
    std::string kept;
    Shape with_ones;
    for (int k = 0; k < shape.size(); ++k) {
      const bool there = known.find(equation.terms[i][k]) != std::string::npos;
      if (there) kept += equation.terms[i][k];
      with_ones.push_back(there ? shape[k] : 1);
    }
    Attributes attributes;
    attributes.Set("equation", absl::StrCat(known, "->", kept));
    Value* dx = b.Reshape(b.Emit("Einsum", std::move(operands), std::move(attributes)), with_ones);
    gradients[i] = with_ones == shape ? dx : b.Emit("Expand", {dx, b.Ints(shape)});
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"Einsum", "", Einsum}};

}  // namespace

absl::Span<const GradientRuleEntry> EinsumRules() { return kRules; }

}  // namespace pipec
