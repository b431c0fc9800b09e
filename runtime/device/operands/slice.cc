// Slice, and SliceGrad which writes a gradient back to where Slice read.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/move.h"

namespace pipec {
namespace {

// ONNX's rules: negative bounds count from the end, bounds are then held to the operand. Allocates nothing if
// all is well.
absl::StatusOr<StridedMove> SliceRegion(const Shape& operand, absl::Span<const int64_t> starts,
                                        absl::Span<const int64_t> ends, absl::Span<const int64_t> axes,
                                        absl::Span<const int64_t> steps) {
  StridedMove region{operand, Strides(operand)};
  for (size_t i = 0; i < starts.size(); ++i) {
    absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(operand.size()));
    if (!axis.ok()) return axis.status();
    const int64_t dim = operand[*axis], step = steps[i];
    if (step == 0) return absl::InvalidArgumentError(absl::StrCat("the step on axis ", axes[i], " is 0"));
    const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? dim : dim - 1;
    const int64_t start = std::clamp(starts[i] < 0 ? starts[i] + dim : starts[i],
                                     step > 0 ? 0 : std::min<int64_t>(0, most), most);
    const int64_t end = std::clamp(ends[i] < 0 ? ends[i] + dim : ends[i], least, most);
    const int64_t way = step > 0 ? end - start : start - end;
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    region.shape[*axis] = way <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(way) - 1) / stride + 1);
    if (region.shape[*axis] > 0) region.from_offset += start * region.from[*axis];
    // A single element needs no stride, and a huge step would overflow it.
    region.from[*axis] = region.shape[*axis] > 1 ? region.from[*axis] * step : 0;
  }
  region.to = Strides(region.shape);
  return region;
}

}  // namespace

absl::StatusOr<SliceOperands> SliceOperands::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 5}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  SliceOperands operands;
  for (int k = 1; k < 5; ++k) {
    if (!Has(spec, k)) continue;
    const KernelOperand& operand = spec.inputs[k];
    if (!IsSmallInts(operand.type) || operand.type.elements() != spec.inputs[1].type.elements()) {
      return Invalid(
          spec, absl::StrCat("input ", k, " is ", ToString(operand.type), ", wanted one integer an axis"));
    }
    operands.types_[k] = operand.type;
    operands.constants_[k] = operand.constant;
    operands.known_ = operands.known_ && operand.constant != nullptr;
  }
  if (spec.outputs[0].type.dtype != x.dtype)
    return CheckOutput(spec, 0, {x.dtype, spec.outputs[0].type.shape});
  operands.x_ = x;
  operands.y_ = spec.outputs[0].type;
  if (operands.known_) {
    if (const auto move = operands.Place(operands.constants_); !move.ok())
      return Invalid(spec, move.status().message());
  }
  return operands;
}

absl::StatusOr<StridedMove> SliceOperands::Place(const void* const* inputs) const {
  const Ints starts = ReadInts(types_[1], inputs[1]), ends = ReadInts(types_[2], inputs[2]);
  Ints axes(starts.size()), steps(starts.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (types_[3].dtype != DType::kUndefined) axes = ReadInts(types_[3], inputs[3]);
  if (types_[4].dtype != DType::kUndefined) steps = ReadInts(types_[4], inputs[4]);
  ASSIGN_OR_RETURN(StridedMove move, SliceRegion(x_.shape, starts, ends, axes, steps));
  if (move.shape != y_.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slice is ", ToString(move.shape), ", but output 0 is ", ToString(y_.shape)));
  }
  return move;
}

absl::StatusOr<StridedMove> SliceGradMove(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& dy = spec.inputs[0].type;
  if (SizeOf(dy.dtype) == 0) return NoKernelFor(spec, dy.dtype);
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape shape(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, shape}));
  const std::vector<int64_t> starts = spec.attributes.Ints("starts"), axes = spec.attributes.Ints("axes"),
                             steps = spec.attributes.Ints("steps");
  if (shape.size() != dy.shape.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return Invalid(spec, "shape, starts, axes and steps do not fit each other");
  }
  StridedMove region{shape, Strides(dy.shape), Strides(shape)};
  for (size_t i = 0; i < starts.size(); ++i) {
    absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(shape.size()));
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    const int64_t n = dy.shape[*axis], dim = shape[*axis];
    region.shape[*axis] = n;
    if (n == 0) continue;
    // Both ends inside the operand: all of it is. The step is compared first, so that nothing overflows.
    const bool inside =
        starts[i] >= 0 && starts[i] < dim && steps[i] != 0 &&
        (n == 1 || (std::abs(static_cast<double>(steps[i])) * static_cast<double>(n - 1) < dim &&
                    starts[i] + (n - 1) * steps[i] >= 0 && starts[i] + (n - 1) * steps[i] < dim));
    if (!inside) {
      return Invalid(spec, absl::StrCat("start ", starts[i], ", step ", steps[i], " and ", n,
                                        " elements leave axis ", axes[i], " of ", ToString(shape)));
    }
    region.to_offset += starts[i] * region.to[*axis];
    region.to[*axis] *= n == 1 ? 1 : steps[i];
  }
  if (region.shape != dy.shape) {
    return Invalid(spec,
                   absl::StrCat("input 0 is ", ToString(dy.shape), ", wanted ", ToString(region.shape)));
  }
  return region;
}

}  // namespace pipec
