#include "compiler/onnx/schema/inference_guards.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compiler/onnx/read/tensor_limits.h"
#include "compiler/onnx/schema/operand_shapes.h"
#include "runtime/base/counted.h"
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
    return refuse(absl::StrCat("has ", Counted(terms.size(), "term", "terms"), " for ",
                               Counted(spec.inputs.size(), "operand", "operands")));
  }
  std::map<char, int64_t> known;  // letter -> size of its axes
  int64_t ellipsis_axes = -1;
  for (size_t k = 0; k < terms.size(); ++k) {
    std::string letters;
    if (!letters_of(terms[k], letters)) return refuse("is not made of letters and '...'");
    const int64_t rank = spec.inputs[k] ? spec.inputs[k]->type.shape.size() : 0;
    const int64_t rest = rank - static_cast<int64_t>(letters.size());
    const bool has_ellipsis = letters.size() != terms[k].size();
    if (has_ellipsis ? rest < 0 : rest != 0) {
      return refuse(absl::StrCat("has the term '", terms[k], "' for an operand with ", rank, " axes"));
    }
    const int64_t dots = has_ellipsis ? static_cast<int64_t>(terms[k].find(kEllipsis)) : rank;
    for (int64_t i = 0; i < static_cast<int64_t>(letters.size()); ++i) {
      const int64_t size = spec.inputs[k]->type.shape[i < dots ? i : i + rest];
      int64_t& of_letter = known.try_emplace(letters[i], size).first->second;
      if (size != of_letter && size != 1 && of_letter != 1) {
        return refuse(absl::StrCat("has '", std::string(1, letters[i]), "' for ", of_letter, " and ", size));
      }
      of_letter = std::max(of_letter, size);
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

// Weights W [directions, gates x hidden_size, inputs], R [directions, gates x hidden_size, hidden_size].
absl::Status CheckRecurrent(const NodeSpec& spec) {
  const std::string direction = spec.attributes.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return absl::InvalidArgumentError(absl::StrCat("direction '", direction, "' is not known"));
  }
  const int64_t gates = spec.op == "LSTM" ? 4 : spec.op == "GRU" ? 3 : 1;
  const Shape& w = spec.inputs[1]->type.shape;
  const Shape& r = spec.inputs[2]->type.shape;
  const int64_t hidden = spec.attributes.Int("hidden_size", r.size() == 3 ? r[2] : 0);
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (w.size() == 3 && r.size() == 3 && hidden > 0 && r[2] == hidden && r[1] / gates == hidden &&
      r[1] % gates == 0 && w[1] == r[1] && w[0] == directions && r[0] == directions) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("hidden_size ", hidden, " and direction '", direction,
                                                 "' do not fit weights ", ToString(spec.inputs[1]->type),
                                                 " and ", ToString(spec.inputs[2]->type)));
}

absl::Status CheckLrn(const NodeSpec& spec) {
  const int64_t size = spec.attributes.Int("size", 1);
  return size >= 1 ? absl::OkStatus()
                   : absl::InvalidArgumentError(absl::StrCat("size ", size, " is below 1"));
}

}  // namespace

absl::Status CheckBeforeInference(const NodeSpec& spec, int outputs) {
  if (spec.inputs.size() > kMaxOperands || outputs > kMaxOperands) {
    return absl::InvalidArgumentError(absl::StrCat("has ", Counted(spec.inputs.size(), "operand", "operands"),
                                                   " and ", outputs, " results, at most ", kMaxOperands,
                                                   " are supported"));
  }
  if (!spec.domain.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAxis(spec));
  if (spec.op == "Conv" || spec.op == "ConvTranspose") RETURN_IF_ERROR(CheckGroups(spec));
  if (spec.op == "LSTM" || spec.op == "GRU" || spec.op == "RNN") RETURN_IF_ERROR(CheckRecurrent(spec));
  if (spec.op == "LRN") return CheckLrn(spec);
  if (spec.op == "Split") return CheckSplit(spec, outputs);
  if (spec.op == "Einsum") return CheckEinsum(spec);
  return CheckOperandShapes(spec);
}

}  // namespace pipec
