// Sums of products: quantised matrix products, Einsum.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/batch_rules.h"

namespace pipec {
namespace {

int IntegerProduct(const Node& node, int) { return ProductBatchAxis(node, 0, 1); }
int QuantisedProduct(const Node& node, int) { return ProductBatchAxis(node, 0, 3); }

// The axes of one term of an Einsum equation, one character each; what "..." stands for becomes upper-case
// digits counted from its last axis, so that terms of different rank line up.
std::string Labels(std::string term, int rank) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int count = rank - (static_cast<int>(term.size()) - 3);
  std::string hidden;
  for (int i = count; i > 0; --i) hidden += static_cast<char>('0' + i);
  return term.substr(0, dots) + hidden + term.substr(dots + 3);
}

// Without "->": the hidden axes, then the labels that occur once, sorted.
std::string ImplicitResult(const std::string& terms) {
  std::string once;
  for (char c : terms) {
    if (absl::ascii_isalpha(c) && std::count(terms.begin(), terms.end(), c) == 1) once += c;
  }
  std::sort(once.begin(), once.end());
  return (terms.find("...") == std::string::npos ? "" : "...") + once;
}

int Einsum(const Node& node, int k) {
  std::string equation = node.attributes.String("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != node.inputs().size()) return -1;
  const std::string result =
      Labels(sides.size() > 1 ? sides[1] : ImplicitResult(sides[0]), node.output(k)->type.shape.size());
  char batch = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Value* in = node.input(i);
    const std::string labels = Labels(terms[i], in->type.shape.size());
    if (labels.size() != in->type.shape.size()) return -1;
    if (in->batch_axis < 0) continue;
    const char label = labels[in->batch_axis];
    // Two axes of one operand under one label: its diagonal.
    if ((batch && batch != label) || std::count(labels.begin(), labels.end(), label) > 1) return -1;
    batch = label;
  }
  if (!batch || std::count(result.begin(), result.end(), batch) != 1) return -1;
  const int axis = result.find(batch);
  for (const Value* in : node.inputs()) {
    if (in->batch_axis >= 0 && in->type.shape[in->batch_axis] != node.output(k)->type.shape[axis]) return -1;
  }
  return axis;
}

const BatchRule kRules[] = {
    {"MatMulInteger", IntegerProduct},
    {"QLinearMatMul", QuantisedProduct},
    {"Einsum", Einsum},
};

}  // namespace

absl::Span<const BatchRule> ProductBatchRules() { return kRules; }

}  // namespace pipec
