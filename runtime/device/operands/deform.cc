#include "runtime/device/operands/deform.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<Deform> Deform::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 5}));
  const TensorType &x = spec.inputs[0].type, &w = spec.inputs[1].type, &y = spec.outputs[0].type;
  if (x.shape.size() > 4) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (DeformConv): X is ", ToString(x),
                                                 ", 2 spatial axes are known"));
  }
  Deform d;
  d.group = spec.attributes.Int("group", 1), d.offset_group = spec.attributes.Int("offset_group", 1);
  if (x.shape.size() != 4 || w.shape.size() != 4 || y.shape.size() != 4 || d.group < 1 ||
      d.offset_group < 1 || x.shape[1] < 1 || x.shape[1] % d.group != 0 || w.shape[0] % d.group != 0 ||
      x.shape[1] % d.offset_group != 0 || w.shape[1] != x.shape[1] / d.group || w.dtype != x.dtype) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", W ", ToString(w), ", Y ", ToString(y),
                                      " in groups of ", d.group, ", offsets in groups of ", d.offset_group));
  }
  d.samples = x.shape[0], d.channels = x.shape[1], d.filters = w.shape[0];
  ASSIGN_OR_RETURN(const Windows windows,
                   ReadWindows(spec, absl::MakeSpan(x.shape).subspan(2), absl::MakeSpan(y.shape).subspan(2),
                               absl::MakeSpan(w.shape).subspan(2), /*ceil_mode=*/false));
  d.rows = windows.axes[1], d.columns = windows.axes[2];
  const int64_t moved = d.offset_group * d.taps();
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, {d.samples, d.filters, d.rows.out, d.columns.out}}));
  RETURN_IF_ERROR(CheckInput(spec, 2, {x.dtype, {d.samples, 2 * moved, d.rows.out, d.columns.out}}));
  RETURN_IF_ERROR(CheckInput(spec, 3, {x.dtype, {d.filters}}));
  RETURN_IF_ERROR(CheckInput(spec, 4, {x.dtype, {d.samples, moved, d.rows.out, d.columns.out}}));
  return d;
}

}  // namespace pipec
