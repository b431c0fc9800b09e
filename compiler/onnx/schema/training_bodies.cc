#include "compiler/onnx/schema/training_bodies.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/schema/function_body.h"

namespace pipec {
namespace {

constexpr char kDomain[] = "ai.onnx.preview.training";

// A number of the parameters' type, called `name`. With a point: without one the parser takes it for an integer.
std::string Number(absl::string_view name, double value) {
  return absl::StrFormat("  %s_f = Constant <value_float = %#.9g> ()\n  %s = CastLike (%s_f, X0)\n", name,
                         value, name, name);
}

// For tensor i; what they share is computed before. G: with the norm's gradient added.
std::string Regularised(int i) {
  return absl::StrFormat("  N%d = Mul (norm, X%d)\n  D%d = Add (N%d, G%d)\n", i, i, i, i, i);
}

std::string Adagrad(int i) {
  return Regularised(i) + absl::StrFormat(
                              "  S%1$d = Mul (D%1$d, D%1$d)\n  newH%1$d = Add (H%1$d, S%1$d)\n"
                              "  Q%1$d = Sqrt (newH%1$d)\n  E%1$d = Add (Q%1$d, epsilon)\n"
                              "  U%1$d = Div (D%1$d, E%1$d)\n  M%1$d = Mul (rate, U%1$d)\n"
                              "  newX%1$d = Sub (X%1$d, M%1$d)\n",
                              i);
}

std::string Adam(int i) {
  return Regularised(i) +
         absl::StrFormat(
             "  A%1$d = Mul (alpha, V%1$d)\n  B%1$d = Mul (rest_alpha, D%1$d)\n  newV%1$d = Add (A%1$d, "
             "B%1$d)\n"
             "  S%1$d = Mul (D%1$d, D%1$d)\n  C%1$d = Mul (beta, H%1$d)\n  F%1$d = Mul (rest_beta, S%1$d)\n"
             "  newH%1$d = Add (C%1$d, F%1$d)\n  Q%1$d = Sqrt (newH%1$d)\n  E%1$d = Add (Q%1$d, epsilon)\n"
             "  U%1$d = Div (newV%1$d, E%1$d)\n  M%1$d = Mul (rate, U%1$d)\n  Y%1$d = Sub (X%1$d, M%1$d)\n"
             "  newX%1$d = Mul (rest_post, Y%1$d)\n",
             i);
}

std::string Momentum(int i, bool nesterov) {
  std::string text = Regularised(i) + absl::StrFormat(
                                          "  A%1$d = Mul (alpha, V%1$d)\n  B%1$d = Mul (weight, D%1$d)\n"
                                          "  newV%1$d = Add (A%1$d, B%1$d)\n",
                                          i);
  if (nesterov) {
    absl::StrAppendFormat(&text, "  C%1$d = Mul (alpha, newV%1$d)\n  U%1$d = Add (D%1$d, C%1$d)\n", i);
  } else {
    absl::StrAppendFormat(&text, "  U%1$d = Identity (newV%1$d)\n", i);
  }
  return text + absl::StrFormat("  M%1$d = Mul (R, U%1$d)\n  newX%1$d = Sub (X%1$d, M%1$d)\n", i);
}

// R, T as a float, and whether this is not the first step.
constexpr char kCount[] =
    "  zero = Constant <value_int = 0> ()\n  later = Greater (T, zero)\n  count = CastLike (T, X0)\n";

std::string Shared(const NodeSpec& spec) {
  const auto value = [&](absl::string_view name, float otherwise) {
    return spec.attributes.Float(name, otherwise);
  };
  std::string text = kCount + Number("norm", value("norm_coefficient", 0)) + Number("one", 1);
  if (spec.op == "Momentum") {
    return text + Number("alpha", value("alpha", 0)) + Number("beta", value("beta", 0)) +
           "  weight = Where (later, beta, one)\n";
  }
  if (spec.op == "Adagrad") {
    return text + Number("epsilon", value("epsilon", 1e-6f)) + Number("decay", value("decay_factor", 0)) +
           "  grown = Mul (count, decay)\n  divisor = Add (one, grown)\n  rate = Div (R, divisor)\n";
  }
  return text + Number("epsilon", value("epsilon", 1e-2f)) + Number("alpha", value("alpha", 0.9f)) +
         Number("beta", value("beta", 0.999f)) + Number("post", value("norm_coefficient_post", 0)) +
         "  rest_alpha = Sub (one, alpha)\n  rest_beta = Sub (one, beta)\n  rest_post = Sub (one, post)\n"
         "  alphas = Pow (alpha, count)\n  betas = Pow (beta, count)\n"
         "  rest_alphas = Sub (one, alphas)\n  rest_betas = Sub (one, betas)\n  root = Sqrt (rest_betas)\n"
         // In the first step nothing is corrected, and rest_alphas is 0.
         "  safe = Where (later, rest_alphas, one)\n  correction = Div (root, safe)\n"
         "  corrected = Mul (R, correction)\n  rate = Where (later, corrected, R)\n";
}

}  // namespace

std::optional<std::string> TrainingBody(const NodeSpec& spec) {
  if (spec.domain != kDomain) return std::nullopt;
  const bool adam = spec.op == "Adam", momentum = spec.op == "Momentum";
  if (!adam && !momentum && spec.op != "Adagrad") return std::nullopt;
  // X, G and the states of every tensor, after R and T.
  const std::vector<absl::string_view> kinds =
      adam ? std::vector<absl::string_view>{"X", "G", "V", "H"}
           : std::vector<absl::string_view>{"X", "G", momentum ? "V" : "H"};
  const int each = static_cast<int>(kinds.size()), rest = static_cast<int>(spec.inputs.size()) - 2;
  if (rest < each || rest % each != 0) return std::nullopt;
  const int tensors = rest / each;
  std::vector<std::string> inputs = {"R", "T"}, outputs;
  for (absl::string_view kind : kinds) {
    for (int i = 0; i < tensors; ++i) {
      inputs.push_back(absl::StrCat(kind, i));
      if (kind != "G") outputs.push_back(absl::StrCat("new", kind, i));
    }
  }
  std::string body = Shared(spec);
  for (int i = 0; i < tensors; ++i) {
    body += adam       ? Adam(i)
            : momentum ? Momentum(i, spec.attributes.String("mode") == "nesterov")
                       : Adagrad(i);
  }
  return absl::StrCat("<domain: \"", kDomain, "\", opset_import: [\"\" : ", NewestOpset(""), "]>\n", spec.op,
                      " (", absl::StrJoin(inputs, ", "), ") => (", absl::StrJoin(outputs, ", "), ")\n{\n",
                      body, "}\n");
}

}  // namespace pipec
