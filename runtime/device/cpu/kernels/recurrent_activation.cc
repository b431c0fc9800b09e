#include "runtime/device/cpu/kernels/recurrent_activation.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// Which values an activation has, and what they are if the node does not say.
struct Row {
  absl::string_view name;
  ActivationKind kind;
  bool has_alpha, has_beta;
  float alpha, beta;
};

constexpr Row kRows[] = {
    {"Relu", ActivationKind::kRelu, false, false, 0, 0},
    {"Tanh", ActivationKind::kTanh, false, false, 0, 0},
    {"Sigmoid", ActivationKind::kSigmoid, false, false, 0, 0},
    {"Affine", ActivationKind::kAffine, true, true, 1, 0},
    {"LeakyRelu", ActivationKind::kLeakyRelu, true, false, 0.01f, 0},
    {"ThresholdedRelu", ActivationKind::kThresholdedRelu, true, false, 1, 0},
    {"ScaledTanh", ActivationKind::kScaledTanh, true, true, 1, 1},
    {"HardSigmoid", ActivationKind::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"Elu", ActivationKind::kElu, true, false, 1, 0},
    {"Softsign", ActivationKind::kSoftsign, false, false, 0, 0},
    {"Softplus", ActivationKind::kSoftplus, false, false, 0, 0},
};

// Names are compared without regard to case, as the specification's examples
// spell them either way.
const Row *Find(absl::string_view name) {
  for (const Row &row : kRows) {
    const bool same =
        std::equal(row.name.begin(), row.name.end(), name.begin(), name.end(),
                   [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    if (same) return &row;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<Activation>> ReadActivations(const KernelSpec &spec, int directions,
                                                        const std::vector<ActivationKind> &otherwise) {
  std::vector<Activation> activations;
  if (!spec.attributes.Has("activations")) {
    for (int d = 0; d < directions; ++d) {
      for (ActivationKind kind : otherwise) activations.push_back({kind});
    }
    return activations;
  }
  const std::vector<std::string> names = spec.attributes.Strings("activations");
  if (names.size() != directions * otherwise.size()) {
    return Invalid(spec, absl::StrCat("attribute activations has ", names.size(), " names, wanted ",
                                      directions * otherwise.size()));
  }
  const std::vector<float> alphas = spec.attributes.Floats("activation_alpha"),
                           betas = spec.attributes.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string &name : names) {
    const Row *row = Find(name);
    if (row == nullptr) return Invalid(spec, absl::StrCat("unknown activation '", name, "'"));
    Activation activation{row->kind, row->alpha, row->beta};
    if (row->has_alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (row->has_beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    activations.push_back(activation);
  }
  return activations;
}

}  // namespace pipec::cpu
