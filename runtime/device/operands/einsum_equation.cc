#include "runtime/device/operands/einsum_equation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = -1;

// 0 to 51, in the order in which an implicit result has them: capitals first.
int Letter(char c) { return absl::ascii_isupper(c) ? c - 'A' : 26 + c - 'a'; }

// The letters of one term, "..." as kEllipsis.
absl::StatusOr<std::vector<int>> ReadTerm(const KernelSpec &spec, absl::string_view term) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (absl::ascii_isalpha(term[i])) {
      labels.push_back(Letter(term[i]));
    } else if (term.substr(i, 3) == "..." && std::count(labels.begin(), labels.end(), kEllipsis) == 0) {
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return Invalid(spec, absl::StrCat("'", term, "' is no term of an equation"));
    }
  }
  return labels;
}

// Replaces kEllipsis by the labels of `axes` axes, of which the last is
// kLetters.
void Expand(std::vector<int> &labels, int axes) {
  auto it = std::find(labels.begin(), labels.end(), kEllipsis);
  if (it == labels.end()) return;
  it = labels.erase(it);
  std::vector<int> own;
  for (int k = axes; k-- > 0;) own.push_back(kLetters + k);
  labels.insert(it, own.begin(), own.end());
}

}  // namespace

absl::StatusOr<EinsumEquation> ReadEinsum(const KernelSpec &spec) {
  const std::string equation = absl::StrReplaceAll(spec.attributes.String("equation"), {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || terms.size() != spec.inputs.size()) {
    return Invalid(
        spec, absl::StrCat("equation '", equation, "' is for ", Counted(terms.size(), "operand", "operands"),
                           ", there are ", spec.inputs.size()));
  }
  EinsumEquation e;
  e.dims.assign(kLetters + kMaxRank, 1);
  std::vector<int> uses(kLetters + kMaxRank);
  int ellipsis_axes = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    const Shape &shape = spec.inputs[k].type.shape;
    ASSIGN_OR_RETURN(std::vector<int> labels, ReadTerm(spec, terms[k]));
    const int named =
        static_cast<int>(std::count_if(labels.begin(), labels.end(), [](int l) { return l >= 0; }));
    const int others = static_cast<int>(shape.size()) - named;
    if (others < 0 || (others > 0 && named == static_cast<int>(labels.size()))) {
      return Invalid(spec,
                     absl::StrCat("operand ", k, " is ", ToString(shape), ", its term '", terms[k], "'"));
    }
    ellipsis_axes = std::max(ellipsis_axes, others);
    Expand(labels, others);
    for (size_t i = 0; i < labels.size(); ++i) {
      int64_t &dim = e.dims[labels[i]];
      ++uses[labels[i]];
      if (dim != 1 && shape[i] != 1 && dim != shape[i]) {
        return Invalid(spec, absl::StrCat("axis ", i, " of operand ", k, " is ", shape[i],
                                          ", an earlier one is ", dim, " in '", equation, "'"));
      }
      if (dim == 1) dim = shape[i];
    }
    e.operands.push_back(std::move(labels));
  }
  if (sides.size() == 2) {
    ASSIGN_OR_RETURN(e.result, ReadTerm(spec, sides[1]));
  } else {
    e.result = {kEllipsis};
    for (int label = 0; label < kLetters; ++label) {
      if (uses[label] == 1) e.result.push_back(label);
    }
  }
  Expand(e.result, ellipsis_axes);
  for (size_t i = 0; i < e.result.size(); ++i) {
    const int label = e.result[i];
    if (uses[label] == 0 || std::count(e.result.begin(), e.result.end(), label) > 1) {
      return Invalid(
          spec, absl::StrCat("the result of '", equation, "' names an axis that is not there, or one twice"));
    }
  }
  return e;
}

}  // namespace pipec
