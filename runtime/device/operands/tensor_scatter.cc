#include "runtime/device/operands/tensor_scatter.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/axis.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<TensorScatterSizes> ReadTensorScatter(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &cache = spec.inputs[0].type, &update = spec.inputs[1].type;
  if (SizeOf(cache.dtype) == 0) return NoKernelFor(spec, cache.dtype);
  const std::string mode = spec.attributes.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return Invalid(spec, absl::StrCat("mode is ", mode, ", wanted linear or circular"));
  }
  const int rank = static_cast<int>(cache.shape.size());
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", -2), rank);
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  if (*axis == 0) return Invalid(spec, "axis 0 is the batch's");
  TensorType wanted = cache;
  if (static_cast<int>(update.shape.size()) == rank) wanted.shape[*axis] = update.shape[*axis];
  RETURN_IF_ERROR(CheckInput(spec, 1, wanted));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, DType::kInt64, cache.shape[0]));
  RETURN_IF_ERROR(CheckOutput(spec, 0, cache));
  ASSIGN_OR_RETURN(const AxisView view, ViewAlong(cache.shape, *axis));
  const TensorScatterSizes sizes{.outer = view.outer,
                                 .length = view.length,
                                 .count = wanted.shape[*axis],
                                 .bytes = view.inner * SizeOf(cache.dtype),
                                 .samples = cache.shape[0],
                                 .circular = mode == "circular"};
  if (sizes.count > sizes.length)
    return Invalid(spec, absl::StrCat("an update of ", sizes.count, " is longer than the cache"));
  return sizes;
}

}  // namespace pipec
