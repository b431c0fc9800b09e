#include "runtime/device/operands/recurrence.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
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

// From the attributes activations, activation_alpha and activation_beta: `directions` times as many as `otherwise`
// names, or those where the attribute is absent. The values of alpha and beta go to the activations that have such
// a value, in their order.
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

// `states` states from operand 5 and result 1 on. `otherwise`: the activations of one direction where the node
// names none.
absl::StatusOr<Recurrence> ReadRecurrence(const KernelSpec &spec, int64_t gates, int states,
                                          const std::vector<ActivationKind> &otherwise) {
  const TensorType &x = spec.inputs[0].type, &w = spec.inputs[1].type, &weights = spec.inputs[2].type;
  if (x.shape.size() != 3 || w.shape.size() != 3 || weights.shape.size() != 3) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", W ", ToString(w), ", R ", ToString(weights),
                                      ", wanted rank 3 of each"));
  }
  const Attributes &attributes = spec.attributes;
  Recurrence r;
  const std::string direction = attributes.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Invalid(spec,
                   absl::StrCat("direction is ", direction, ", wanted forward, reverse or bidirectional"));
  }
  const int64_t layout = attributes.Int("layout", 0);
  if (layout != 0 && layout != 1) return Invalid(spec, absl::StrCat("layout is ", layout, ", wanted 0 or 1"));
  r.batch_first = layout == 1;
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.first_reversed = direction == "reverse";
  r.steps = x.shape[layout], r.batch = x.shape[1 - layout], r.input = x.shape[2];
  r.gates = gates;
  r.hidden = weights.shape[2];
  if (const int64_t stated = attributes.Int("hidden_size", r.hidden); stated != r.hidden) {
    return Invalid(spec, absl::StrCat("hidden_size is ", stated, ", R is ", ToString(weights)));
  }
  r.linear_before_reset = attributes.Int("linear_before_reset", 0) != 0;
  r.input_forget = attributes.Int("input_forget", 0) != 0;
  r.clip = attributes.Float("clip", 0);
  ASSIGN_OR_RETURN(r.activations, ReadActivations(spec, r.directions, otherwise));

  const DType dtype = x.dtype;
  const int64_t d = r.directions, rows = gates * r.hidden;
  RETURN_IF_ERROR(CheckInput(spec, 1, {dtype, {d, rows, r.input}}));
  RETURN_IF_ERROR(CheckInput(spec, 2, {dtype, {d, rows, r.hidden}}));
  RETURN_IF_ERROR(CheckInput(spec, 3, {dtype, {d, 2 * rows}}));
  RETURN_IF_ERROR(CheckInput(spec, 4, {DType::kInt32, {r.batch}}));
  r.has_bias = Has(spec, 3), r.has_lengths = Has(spec, 4), r.has_initial_h = Has(spec, 5);
  const Shape state = r.batch_first ? Shape{r.batch, d, r.hidden} : Shape{d, r.batch, r.hidden};
  const Shape y = r.batch_first ? Shape{r.batch, r.steps, d, r.hidden} : Shape{r.steps, d, r.batch, r.hidden};
  if (HasOutput(spec, 0)) RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, y}));
  for (int k = 0; k < states; ++k) {
    RETURN_IF_ERROR(CheckInput(spec, 5 + k, {dtype, state}));
    if (HasOutput(spec, 1 + k)) RETURN_IF_ERROR(CheckOutput(spec, 1 + k, {dtype, state}));
  }
  return r;
}

absl::Status CheckDifferentiable(const KernelSpec &spec, const Recurrence &r) {
  const auto refuse = [&](absl::string_view what) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): ", what));
  };
  if (r.clip > 0) return refuse("attribute clip has no gradient here");
  for (const Activation &f : r.activations) {
    const bool bends = f.kind == ActivationKind::kLeakyRelu || f.kind == ActivationKind::kElu ||
                       f.kind == ActivationKind::kScaledTanh;
    if ((bends && f.alpha <= 0) || (f.kind == ActivationKind::kThresholdedRelu && f.alpha < 0))
      return refuse(absl::StrCat("an activation with alpha ", f.alpha, ", wanted a positive one"));
  }
  return absl::OkStatus();
}

constexpr ActivationKind kSigmoid = ActivationKind::kSigmoid, kTanh = ActivationKind::kTanh;

// What one of the three ops is.
struct Op {
  int64_t gates;
  bool cell, more;  // a second state; GRUGrad's fifth result
  std::vector<ActivationKind> activations;
};
Op Rnn() { return {1, false, false, {kTanh}}; }
Op Gru() { return {3, false, true, {kSigmoid, kTanh}}; }
Op Lstm() { return {4, true, false, {kSigmoid, kTanh, kTanh}}; }

absl::StatusOr<Recurrence> ReadForward(const KernelSpec &spec, const Op &op) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, op.cell ? 8 : 6, 0, op.cell ? 3 : 2}));
  return ReadRecurrence(spec, op.gates, op.cell ? 2 : 1, op.activations);
}

// Operands 5 and 6 are states; 7 to 9 have the types of Y, Y_h and Y_c.
absl::StatusOr<Recurrence> ReadGradient(const KernelSpec &spec, const Op &op) {
  const int results = op.cell || op.more ? 5 : 4;
  RETURN_IF_ERROR(CheckOperands(spec, {3, 10, results, results}));
  if (spec.inputs.size() != 10) return Invalid(spec, "wanted 10 operands, absent ones marked");
  // Y, Y_h and Y_c have the types that the forward op gives them.
  KernelSpec forward = spec;
  forward.inputs.resize(7);
  forward.outputs.clear();
  for (int k = 7; k < 10; ++k) forward.outputs.push_back(spec.inputs[k]);
  ASSIGN_OR_RETURN(const Recurrence r, ReadRecurrence(forward, op.gates, op.cell ? 2 : 1, op.activations));
  RETURN_IF_ERROR(CheckDifferentiable(spec, r));
  if (!op.cell && (Has(spec, 6) || Has(spec, 9))) return Invalid(spec, "operands 6 and 9 are the LSTM's");
  const DType dtype = spec.inputs[0].type.dtype;
  const int64_t d = r.directions, rows = r.steps * r.batch;
  const Shape state = r.batch_first ? Shape{r.batch, d, r.hidden} : Shape{d, r.batch, r.hidden};
  const Shape row = {d, rows, r.hidden};
  RETURN_IF_ERROR(CheckOutput(spec, 0, spec.inputs[0].type));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {dtype, {d, rows, op.gates * r.hidden}}));
  RETURN_IF_ERROR(CheckOutput(spec, 2, {dtype, row}));
  RETURN_IF_ERROR(CheckOutput(spec, 3, {dtype, state}));
  if (op.cell || op.more) RETURN_IF_ERROR(CheckOutput(spec, 4, {dtype, op.cell ? state : row}));
  return r;
}

}  // namespace

absl::StatusOr<Recurrence> ReadRnn(const KernelSpec &spec) { return ReadForward(spec, Rnn()); }
absl::StatusOr<Recurrence> ReadGru(const KernelSpec &spec) { return ReadForward(spec, Gru()); }
absl::StatusOr<Recurrence> ReadLstm(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(Recurrence r, ReadForward(spec, Lstm()));
  RETURN_IF_ERROR(CheckInput(spec, 7, {spec.inputs[0].type.dtype, {r.directions, 3 * r.hidden}}));
  return r;
}
absl::StatusOr<Recurrence> ReadRnnGrad(const KernelSpec &spec) { return ReadGradient(spec, Rnn()); }
absl::StatusOr<Recurrence> ReadGruGrad(const KernelSpec &spec) { return ReadGradient(spec, Gru()); }
absl::StatusOr<Recurrence> ReadLstmGrad(const KernelSpec &spec) { return ReadGradient(spec, Lstm()); }

}  // namespace pipec
