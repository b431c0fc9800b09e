#include "runtime/device/operands/reverse_sequence.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<ReversedSequences> ReadReverseSequence(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const int64_t batch_axis = spec.attributes.Int("batch_axis", 1),
                time_axis = spec.attributes.Int("time_axis", 0);
  if (x.shape.size() < 2 || batch_axis + time_axis != 1 || batch_axis < 0 || batch_axis > 1) {
    return Invalid(spec, absl::StrCat("batch_axis ", batch_axis, ", time_axis ", time_axis, " and X ",
                                      ToString(x), ", wanted axes 0 and 1 of rank 2 or more"));
  }
  const int64_t batch = x.shape[batch_axis];
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, {batch}}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return ReversedSequences{batch, x.shape[time_axis],
                           NumElements(absl::MakeSpan(x.shape).subspan(2)) * SizeOf(x.dtype), batch_axis == 1};
}

}  // namespace pipec
