#include "compiler/onnx/inference_guards.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compiler/onnx/tensor_limits.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckSplit(const NodeSpec& spec, int outputs) {
  const int64_t parts = spec.attributes.Int("num_outputs", outputs);
  if (parts >= outputs && parts <= kMaxOperands) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("num_outputs is ", parts, ", but the node has ", outputs, " results"));
}

// "ij,...jk->...ik": letters, at most one "..." a term, which stands for as many axes in every term; behind
// the arrow only what stands before it.
absl::Status CheckEinsum(const NodeSpec& spec) {
  constexpr char kEllipsis[] = "...";
  const std::string equation = absl::StrReplaceAll(spec.attributes.String("equation", ""), {{" ", ""}});
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("equation '", equation, "' ", why));
  };
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() > 2) return refuse("has more than one arrow");
  const auto letters_of = [&](absl::string_view term, std::string& letters) {
    const size_t dots = term.find(kEllipsis);
    letters =
        dots == term.npos ? std::string(term) : absl::StrCat(term.substr(0, dots), term.substr(dots + 3));
    for (const char c : letters) {
      if (!absl::ascii_isalpha(static_cast<unsigned char>(c))) return false;
    }
    return true;
  };
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != spec.inputs.size()) {
    return refuse(absl::StrCat("has ", terms.size(), " terms for ", spec.inputs.size(), " operands"));
  }
  std::set<char> known;
  int64_t ellipsis_axes = -1;
  for (size_t k = 0; k < terms.size(); ++k) {
    std::string letters;
    if (!letters_of(terms[k], letters)) return refuse("is not made of letters and '...'");
    known.insert(letters.begin(), letters.end());
    const int64_t rank = spec.inputs[k] ? spec.inputs[k]->type.shape.size() : 0;
    const int64_t rest = rank - static_cast<int64_t>(letters.size());
    const bool has_ellipsis = letters.size() != terms[k].size();
    if (has_ellipsis ? rest < 0 : rest != 0) {
      return refuse(absl::StrCat("has the term '", terms[k], "' for an operand with ", rank, " axes"));
    }
    if (!has_ellipsis) continue;
    if (ellipsis_axes >= 0 && rest != ellipsis_axes) return refuse("has '...' for different numbers of axes");
    ellipsis_axes = rest;
  }
  if (sides.size() == 1) return absl::OkStatus();
  std::string letters;
  if (!letters_of(sides[1], letters)) return refuse("is not made of letters and '...'");
  if (letters.size() != sides[1].size() && ellipsis_axes < 0)
    return refuse("has '...' behind the arrow only");
  for (const char c : letters) {
    if (!known.contains(c))
      return refuse(absl::StrCat("has '", std::string(1, c), "' behind the arrow only"));
  }
  return absl::OkStatus();
}

// Axes are read into 32 bits.
absl::Status CheckAxis(const NodeSpec& spec) {
  const int64_t axis = spec.attributes.Int("axis", 0);
  if (axis >= -kMaxRank && axis <= kMaxRank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("axis ", axis, " is beyond the supported ", kMaxRank, " axes"));
}

// Conv: weights [M, C/group, ...], ConvTranspose: [C, M/group, ...].
absl::Status CheckGroups(const NodeSpec& spec) {
  const int64_t group = spec.attributes.Int("group", 1);
  const Shape& x = spec.inputs[0]->type.shape;
  const Shape& w = spec.inputs[1]->type.shape;
  if (x.size() < 2 || w.size() < 2) return absl::OkStatus();  // inference says so
  const bool transposed = spec.op == "ConvTranspose";
  if (group >= 1 && w[0] % group == 0 && x[1] % group == 0 &&
      x[1] / group == (transposed ? w[0] / group : w[1])) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(group, " groups do not fit ", spec.op, " of ",
                                                 ToString(spec.inputs[0]->type), " with weights ",
                                                 ToString(spec.inputs[1]->type)));
}

}  // namespace

absl::Status CheckBeforeInference(const NodeSpec& spec, int outputs) {
  if (spec.inputs.size() > kMaxOperands || outputs > kMaxOperands) {
    return absl::InvalidArgumentError(absl::StrCat("has ", spec.inputs.size(), " operands and ", outputs,
                                                   " results, at most ", kMaxOperands, " are supported"));
  }
  if (!spec.domain.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAxis(spec));
  if (spec.op == "Conv" || spec.op == "ConvTranspose") return CheckGroups(spec);
  if (spec.op == "Split") return CheckSplit(spec, outputs);
  if (spec.op == "Einsum") return CheckEinsum(spec);
  return absl::OkStatus();
}

}  // namespace pipec
