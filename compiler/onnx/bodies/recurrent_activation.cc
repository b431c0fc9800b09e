#include "compiler/onnx/bodies/recurrent_activation.h"

#include "absl/strings/ascii.h"

namespace pipec {
namespace {

// Which values an activation has, and what they are if the node does not say.
struct Row {
  absl::string_view name;
  bool has_alpha, has_beta;
  float alpha, beta;
};
constexpr Row kRows[] = {
    {"affine", true, true, 1, 0},
    {"leakyrelu", true, false, 0.01f, 0},
    {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1},
    {"hardsigmoid", true, true, 0.2f, 0.5f},
    {"elu", true, false, 1, 0},
};

}  // namespace

std::vector<GateActivation> ReadGateActivations(const Attributes& attributes, int64_t directions,
                                                const std::vector<std::string>& otherwise) {
  std::vector<std::string> names = attributes.Strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), otherwise.begin(), otherwise.end());
  }
  const std::vector<float> alphas = attributes.Floats("activation_alpha"),
                           betas = attributes.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<GateActivation> activations;
  for (const std::string& name : names) {
    GateActivation activation{absl::AsciiStrToLower(name)};
    for (const Row& row : kRows) {
      if (row.name != activation.name) continue;
      activation.alpha = row.has_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : row.alpha;
      activation.beta = row.has_beta && next_beta < betas.size() ? betas[next_beta++] : row.beta;
    }
    activations.push_back(activation);
  }
  return activations;
}

Body::Name ActivateGate(Body& b, DType dtype, const GateActivation& f, Body::Name x) {
  const auto number = [&](double value) { return b.Scalar(dtype, value); };
  if (f.name == "tanh") return b.Op("Tanh", {x});
  if (f.name == "sigmoid") return b.Op("Sigmoid", {x});
  if (f.name == "relu") return b.Op("Relu", {x});
  if (f.name == "affine") return b.Add(b.Mul(number(f.alpha), x), number(f.beta));
  if (f.name == "leakyrelu") return b.Op("LeakyRelu", {x}, {{"alpha", f.alpha}});
  if (f.name == "thresholdedrelu") return b.Op("ThresholdedRelu", {x}, {{"alpha", f.alpha}});
  if (f.name == "scaledtanh") return b.Mul(number(f.alpha), b.Op("Tanh", {b.Mul(number(f.beta), x)}));
  if (f.name == "hardsigmoid") return b.Op("HardSigmoid", {x}, {{"alpha", f.alpha}, {"beta", f.beta}});
  if (f.name == "elu") return b.Op("Elu", {x}, {{"alpha", f.alpha}});
  return b.Op(f.name == "softsign" ? "Softsign" : "Softplus", {x});
}

Body::Name GateSlope(Body& b, DType dtype, const GateActivation& f, const Body::Name& y) {
  const auto number = [&](double value) { return b.Scalar(dtype, value); };
  const Body::Name zero = number(0), one = number(1), alpha = number(f.alpha);
  if (f.name == "tanh") return b.Sub(one, b.Mul(y, y));
  if (f.name == "sigmoid") return b.Mul(y, b.Sub(one, y));
  if (f.name == "relu" || f.name == "thresholdedrelu") return b.Where(b.Op("Greater", {y, zero}), one, zero);
  if (f.name == "affine") return alpha;
  if (f.name == "leakyrelu") return b.Where(b.Op("Less", {y, zero}), alpha, one);
  if (f.name == "scaledtanh")
    return b.Mul(number(f.beta), b.Sub(alpha, b.Mul(y, b.Mul(y, number(1.0 / f.alpha)))));
  if (f.name == "hardsigmoid") {
    const Body::Name inside = b.Op("And", {b.Op("Greater", {y, zero}), b.Op("Less", {y, one})});
    return b.Where(inside, alpha, zero);
  }
  if (f.name == "elu") return b.Where(b.Op("Less", {y, zero}), b.Add(y, alpha), one);
  if (f.name == "softsign") {
    const Body::Name rest = b.Sub(one, b.Op("Abs", {y}));
    return b.Mul(rest, rest);
  }
  return b.Sub(one, b.Op("Exp", {b.Op("Neg", {y})}));
}

}  // namespace pipec
