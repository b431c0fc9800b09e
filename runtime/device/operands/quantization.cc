#include "runtime/device/operands/quantization.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<QuantizationScales> QuantizationScales::Of(const KernelSpec& spec) {
  const Shape &x = spec.inputs[0].type.shape, &scale = spec.inputs[1].type.shape;
  const auto wrong = [&](absl::string_view why) {
    return Invalid(spec,
                   absl::StrCat("the tensor is ", ToString(x), ", its scale ", ToString(scale), ": ", why));
  };
  // A scalar and a vector of one are the same here.
  if (Has(spec, 2) && spec.inputs[2].type.shape != scale &&
      (spec.inputs[2].type.elements() != 1 || NumElements(scale) != 1)) {
    return wrong("the zero point has another shape");
  }
  QuantizationScales scales;
  const int64_t block = spec.attributes.Int("block_size", 0);
  if (block < 0) return wrong(absl::StrCat("block_size is ", block));
  if (NumElements(scale) == 1 && block == 0) {
    scales.view = {1, NumElements(x), 1};
    return scales;
  }
  const int rank = static_cast<int>(x.size());
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 1), rank);
  if (!axis.ok()) return wrong(axis.status().message());
  ASSIGN_OR_RETURN(scales.view, ViewAlong(x, *axis));
  if (block == 0) {
    if (scale != Shape{x[*axis]}) return wrong("wanted one scale, or one for each place of the axis");
    scales.step = 1;
    return scales;
  }
  Shape wanted = x;
  wanted[*axis] = (x[*axis] + block - 1) / block;
  if (scale != wanted) return wrong(absl::StrCat("wanted ", ToString(wanted), " for blocks of ", block));
  scales.block = block;
  scales.outer_step = wanted[*axis] * scales.view.inner;
  scales.step = scales.view.inner;
  scales.inner_step = 1;
  return scales;
}

}  // namespace pipec
