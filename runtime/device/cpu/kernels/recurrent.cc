#include "runtime/device/cpu/kernels/recurrent.h"

#include <string>

namespace pipec::cpu {

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

}  // namespace pipec::cpu
