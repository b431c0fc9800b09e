#include "runtime/device/operands/axis.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

absl::StatusOr<AxisView> ViewAlong(absl::Span<const int64_t> shape, int64_t axis) {
  const int64_t rank = shape.size();
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of a tensor of shape ", ToString(shape)));
  }
  if (axis < 0) axis += rank;
  return AxisView{NumElements(shape.first(axis)), shape[axis], NumElements(shape.subspan(axis + 1))};
}

absl::StatusOr<AxisView> ViewFrom(absl::Span<const int64_t> shape, int64_t axis) {
  ASSIGN_OR_RETURN(AxisView view, ViewAlong(shape, axis));
  return AxisView{view.outer, view.length * view.inner, 1};
}

}  // namespace pipec
