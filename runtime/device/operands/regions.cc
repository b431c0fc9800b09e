#include "runtime/device/operands/regions.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

// X, the regions with `columns` numbers each, and Y checked.
absl::StatusOr<RegionPooling> ReadPooling(const KernelSpec& spec, int64_t columns, int64_t pooled_height,
                                          int64_t pooled_width) {
  const TensorType &x = spec.inputs[0].type, &rois = spec.inputs[1].type;
  if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != columns || rois.dtype != x.dtype ||
      x.shape[2] == 0 || x.shape[3] == 0) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", rois ", ToString(rois),
                                      ", wanted X of rank 4 with places and ", columns, " numbers a region"));
  }
  if (pooled_height < 1 || pooled_width < 1 || pooled_height > kMostRegionPlaces ||
      pooled_width > kMostRegionPlaces)
    return Invalid(spec, absl::StrCat("the output would be ", pooled_height, " by ", pooled_width));
  RegionPooling p{.samples = x.shape[0], .channels = x.shape[1], .height = x.shape[2], .width = x.shape[3]};
  p.regions = rois.shape[0], p.rows = pooled_height, p.columns = pooled_width;
  p.scale = spec.attributes.Float("spatial_scale", 1);
  if (!(p.scale > 0) || std::isinf(p.scale)) return Invalid(spec, absl::StrCat("spatial_scale is ", p.scale));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, {p.regions, p.channels, p.rows, p.columns}}));
  return p;
}

}  // namespace

absl::StatusOr<RegionAlign> RegionAlign::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  ASSIGN_OR_RETURN(const RegionPooling pooling, ReadPooling(spec, 4, spec.attributes.Int("output_height", 1),
                                                            spec.attributes.Int("output_width", 1)));
  RETURN_IF_ERROR(CheckInput(spec, 2, {DType::kInt64, {pooling.regions}}));
  const std::string mode = spec.attributes.String("mode", "avg"),
                    coordinates = spec.attributes.String("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") return Invalid(spec, absl::StrCat("mode is ", mode));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return Invalid(spec, absl::StrCat("coordinate_transformation_mode is ", coordinates));
  const RegionAlign align{pooling, coordinates == "half_pixel", mode == "max",
                          spec.attributes.Int("sampling_ratio", 0)};
  if (align.points < 0 || align.points > kMostRegionPlaces)
    return Invalid(spec, absl::StrCat("sampling_ratio is ", align.points));
  return align;
}

absl::StatusOr<RegionPooling> MaxRoiPoolingOf(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const std::vector<int64_t> pooled = spec.attributes.Ints("pooled_shape");
  if (pooled.size() != 2)
    return Invalid(spec, absl::StrCat("pooled_shape has ", pooled.size(), " sizes, wanted 2"));
  return ReadPooling(spec, 5, pooled[0], pooled[1]);
}

}  // namespace pipec
