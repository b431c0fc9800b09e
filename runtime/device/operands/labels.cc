#include "runtime/device/operands/labels.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<LabelledRows> LabelledRows::Of(const KernelSpec& spec, absl::Span<const int64_t> shape,
                                              const TensorType& labels, int64_t axis) {
  LabelledRows rows;
  axis = spec.attributes.Int("axis", axis);
  ASSIGN_OR_RETURN(rows.view_, ViewAlong(shape, axis));
  Shape wanted(shape.begin(), shape.end());
  wanted.erase(wanted.begin() + (axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis));
  if (labels.shape != wanted || (labels.dtype != DType::kInt64 && labels.dtype != DType::kInt32)) {
    return Invalid(spec, absl::StrCat("labels are ", ToString(labels), ", wanted int64 or int32 of shape ",
                                      ToString(wanted)));
  }
  rows.is_int64_ = labels.dtype == DType::kInt64;
  rows.has_ignore_index_ = spec.attributes.Has("ignore_index");
  rows.ignore_index_ = spec.attributes.Int("ignore_index");
  ASSIGN_OR_RETURN(rows.samples_, Samples::Of(spec, labels.shape));
  return rows;
}

absl::Status LabelledRows::Check(const void* labels, const StepScalars& scalars) const {
  for (int64_t row = 0; row < rows(); ++row) {
    if (IsPadding(row, scalars)) continue;
    const int64_t label = Label(labels, row);
    if ((label < 0 || label >= classes()) && !Ignored(label)) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " at flat position ", row, " is not in [0, ", classes(), ")",
                       has_ignore_index_ ? absl::StrCat(" and not ignore_index ", ignore_index_) : ""));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
