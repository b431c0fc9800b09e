#include "runtime/device/operands/samples.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/axis.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<Samples> Samples::Of(const KernelSpec& spec, absl::Span<const int64_t> shape) {
  const int64_t axis = spec.attributes.Int("batch_axis", 0);
  int64_t elements = 1;
  for (int64_t dim : shape) elements *= dim;
  if (axis < 0 || shape.empty() || elements == 0) return Samples{.inner = elements};
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(shape, axis));
  const int64_t count = spec.attributes.Int("samples", view.length);
  if (count < 1 || view.length % count != 0) {
    return Invalid(
        spec, absl::StrCat("axis ", axis, " of size ", view.length, " does not hold ", count, " samples"));
  }
  return Samples{true, view.outer, count, view.length / count * view.inner};
}

}  // namespace pipec
