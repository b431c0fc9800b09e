#include "runtime/device/operands/pad.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

// Where place `at` of an axis of n places, which may be outside, is taken from.
int64_t PlaceInside(PadMode mode, int64_t at, int64_t n) {
  if (mode == PadMode::kEdge || n == 1) return std::clamp<int64_t>(at, 0, n - 1);
  const int64_t period = mode == PadMode::kWrap ? n : 2 * (n - 1);
  const int64_t place = (at % period + period) % period;
  return place < n ? place : period - place;
}

PadKept KeptOf(const Shape& x, const Shape& y, const Padding& padding) {
  const Shape x_strides = Strides(x), y_strides = Strides(y);
  PadKept kept{x};
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t before = padding.before[i], after = padding.after[i];
    kept.shape[i] = std::max<int64_t>(0, x[i] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
    kept.from += std::max<int64_t>(-before, 0) * x_strides[i];
    kept.to += std::max<int64_t>(before, 0) * y_strides[i];
  }
  return kept;
}

absl::StatusOr<PadOperands> PadOperands::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const int64_t axes = Has(spec, 3) ? spec.inputs[3].type.elements() : static_cast<int64_t>(x.shape.size());
  if (!IsSmallInts(spec.inputs[1].type) || spec.inputs[1].type.elements() != 2 * axes ||
      (Has(spec, 3) && !IsSmallInts(spec.inputs[3].type))) {
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(spec.inputs[1].type),
                                      ", wanted two integers for each of ", axes, " axes"));
  }
  if (Has(spec, 2) && spec.inputs[2].type.elements() != 1) return Invalid(spec, "input 2 is not one value");
  if (Has(spec, 2)) RETURN_IF_ERROR(CheckInputType(spec, 2, x.dtype));
  if (spec.outputs[0].type.dtype != x.dtype)
    return CheckOutput(spec, 0, {x.dtype, spec.outputs[0].type.shape});
  if (spec.outputs[0].type.shape.size() != x.shape.size())
    return Invalid(spec, "output 0 has another rank than input 0");
  PadOperands operands;
  if (const std::string mode = spec.attributes.String("mode", "constant"); mode == "constant") {
    operands.mode_ = PadMode::kConstant;
  } else if (mode == "edge" || mode == "reflect" || mode == "wrap") {
    if (x.shape.empty() || x.elements() == 0) {
      return Invalid(spec, absl::StrCat("mode ", mode, " has nothing to take from ", ToString(x)));
    }
    operands.mode_ = mode == "edge" ? PadMode::kEdge : mode == "reflect" ? PadMode::kReflect : PadMode::kWrap;
  } else {
    return Invalid(spec, absl::StrCat("mode is ", mode, ", wanted constant, edge, reflect or wrap"));
  }
  operands.x_ = x;
  operands.y_ = spec.outputs[0].type;
  operands.pads_ = spec.inputs[1].type;
  if (Has(spec, 3)) operands.axes_ = spec.inputs[3].type;
  operands.known_ =
      spec.inputs[1].constant != nullptr && (!Has(spec, 3) || spec.inputs[3].constant != nullptr);
  if (!operands.known_) return operands;
  absl::StatusOr<Padding> padding =
      operands.Place(spec.inputs[1].constant, Has(spec, 3) ? spec.inputs[3].constant : nullptr);
  if (!padding.ok()) return Invalid(spec, padding.status().message());
  operands.padding_ = *std::move(padding);
  return operands;
}

absl::StatusOr<Padding> PadOperands::Place(const void* pads_contents, const void* axes_contents) const {
  const size_t rank = x_.shape.size();
  const Ints pads = ReadInts(pads_, pads_contents);
  Ints axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  if (axes_contents != nullptr) axes = ReadInts(axes_, axes_contents);
  Padding padding{Shape(rank, 0), Shape(rank, 0)};
  Shape shape = x_.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(rank));
    if (!axis.ok()) return axis.status();
    const int64_t before = pads[i], after = pads[axes.size() + i];
    constexpr int64_t kMost = int64_t{1} << 48;
    if (std::max(before, after) > kMost || std::min(before, after) < -kMost) {
      return absl::InvalidArgumentError(absl::StrCat("padding ", before, ", ", after, " is out of reach"));
    }
    padding.before[*axis] = before;
    padding.after[*axis] = after;
    shape[*axis] = x_.shape[*axis] + before + after;
  }
  if (shape != y_.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding gives ", ToString(shape), ", but output 0 is ", ToString(y_.shape)));
  }
  return padding;
}

}  // namespace pipec
