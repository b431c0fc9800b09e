#include "runtime/device/operands/resize.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<ResizeOperands> ResizeOperands::Of(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 4}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  ASSIGN_OR_RETURN(const ResizeRule rule, ReadResizeRule(spec));
  const int rank = static_cast<int>(x.shape.size());
  if (rank == 0 || y.shape.size() != x.shape.size() || x.elements() == 0) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y),
                                      ", wanted equal ranks of 1 or more and elements to resize"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  std::vector<int> axes;
  for (int64_t axis : spec.attributes.Ints("axes")) {
    absl::StatusOr<int> own = NormaliseAxis(axis, rank);
    if (!own.ok()) return Invalid(spec, own.status().message());
    axes.push_back(*own);
  }
  for (int axis = 0; axis < rank && !spec.attributes.Has("axes"); ++axis) axes.push_back(axis);
  for (int axis = 0; axis < rank; ++axis) {
    const bool resized = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!resized && x.shape[axis] != y.shape[axis]) {
      return Invalid(
          spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y), ": axis ", axis, " is not resized"));
    }
  }
  const int64_t n = static_cast<int64_t>(axes.size());
  const bool by_sizes = Has(spec, 3), crops = rule.coordinates == Coordinates::kTfCropAndResize;
  if (by_sizes == Has(spec, 2)) return Invalid(spec, "wanted either scales or sizes");
  RETURN_IF_ERROR(CheckInputElements(spec, 2, DType::kFloat32, n));
  RETURN_IF_ERROR(CheckInputElements(spec, 3, DType::kInt64, n));
  if (crops && !Has(spec, 1)) return Invalid(spec, "tf_crop_and_resize without a region (input 1)");
  if (crops) RETURN_IF_ERROR(CheckInputElements(spec, 1, spec.inputs[1].type.dtype, 2 * n));
  if (crops && !IsFloat(spec.inputs[1].type.dtype))
    return Invalid(spec, "the region (input 1) has no floats");
  const bool computes = rule.mode != ResizeMode::kNearest || crops;
  if (SizeOf(x.dtype) == 0 || (computes && x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64)) {
    return NoKernelFor(spec, x.dtype);
  }
  const std::string policy = spec.attributes.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return Invalid(spec, absl::StrCat("keep_aspect_ratio_policy is ", policy));
  }
  ResizeOperands operands;
  operands.x_ = x;
  operands.y_ = y;
  operands.rule_ = rule;
  operands.axes_ = std::move(axes);
  operands.policy_ = policy;
  operands.extrapolation_ = spec.attributes.Float("extrapolation_value", 0);
  operands.by_sizes_ = by_sizes;
  operands.has_region_ = crops;
  if (crops) operands.region_type_ = spec.inputs[1].type.dtype;
  for (int axis = 0; axis < rank; ++axis) operands.taps_.emplace_back(rule, x.shape[axis], y.shape[axis]);
  const auto constant = [&](int k) { return Has(spec, k) ? spec.inputs[k].constant : nullptr; };
  operands.known_ = constant(by_sizes ? 3 : 2) != nullptr && (!crops || constant(1) != nullptr);
  if (operands.known_) {
    if (absl::Status status = operands.Place(constant(1), constant(2), constant(3)); !status.ok())
      return Invalid(spec, status.message());
  }
  return operands;
}

absl::Status ResizeOperands::Place(const void *region, const void *scales, const void *sizes) {
  const int64_t n = static_cast<int64_t>(axes_.size());
  double common = 0;  // the scale of all axes where the aspect ratio is kept
  for (int64_t i = 0; i < n && by_sizes_; ++i) {
    const double own = static_cast<double>(static_cast<const int64_t *>(sizes)[i]) / Dim(axes_[i]);
    common = i == 0 ? own : policy_ == "not_larger" ? std::min(common, own) : std::max(common, own);
  }
  for (size_t axis = 0; axis < taps_.size(); ++axis) {
    const int64_t k = std::find(axes_.begin(), axes_.end(), static_cast<int>(axis)) - axes_.begin();
    double scale = 1, begin = 0, end = 1;
    if (k < n && by_sizes_) {
      scale = policy_ == "stretch" ? static_cast<double>(static_cast<const int64_t *>(sizes)[k]) / Dim(axis)
                                   : common;
    } else if (k < n) {
      scale = static_cast<const float *>(scales)[k];
    }
    if (k < n && has_region_) begin = Region(region, k), end = Region(region, n + k);
    RETURN_IF_ERROR(taps_[axis].Place(scale, begin, end));
  }
  return absl::OkStatus();
}

double ResizeOperands::Region(const void *region, int64_t k) const {
  return region_type_ == DType::kFloat64 ? static_cast<const double *>(region)[k]
                                         : static_cast<const float *>(region)[k];
}

}  // namespace pipec
