#include "runtime/device/operands/one_hot.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<OneHotSizes> ReadOneHot(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType &indices = spec.inputs[0].type, &depth = spec.inputs[1].type,
                   &values = spec.inputs[2].type;
  const Shape& y = spec.outputs[0].type.shape;
  absl::StatusOr<int> axis =
      NormaliseAxis(spec.attributes.Int("axis", -1), static_cast<int>(indices.shape.size()) + 1);
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  if (depth.elements() != 1)
    return Invalid(spec, absl::StrCat("depth is ", ToString(depth), ", wanted one number"));
  if (values.shape != Shape{2})
    return Invalid(spec, absl::StrCat("values are ", ToString(values), ", wanted two"));
  Shape shape = indices.shape;
  shape.insert(shape.begin() + *axis, *axis < static_cast<int>(y.size()) ? y[*axis] : 0);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {values.dtype, shape}));
  return OneHotSizes{NumElements(absl::MakeSpan(indices.shape).first(*axis)), shape[*axis],
                     NumElements(absl::MakeSpan(indices.shape).subspan(*axis))};
}

}  // namespace pipec
