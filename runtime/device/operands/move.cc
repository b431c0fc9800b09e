#include "runtime/device/operands/move.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/broadcast.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<StridedMove> TransposeMove(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const int rank = static_cast<int>(x.shape.size());
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  std::vector<int64_t> perm = spec.attributes.Ints("perm");
  if (!spec.attributes.Has("perm")) {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  if (static_cast<int>(perm.size()) != rank) {
    return Invalid(
        spec, absl::StrCat("perm has ", Counted(perm.size(), "axis", "axes"), ", the operand has ", rank));
  }
  const Shape strides = Strides(x.shape);
  Shape shape, from;
  unsigned seen = 0;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= rank || (seen >> axis & 1) != 0) {
      return Invalid(spec, absl::StrCat("perm ", ToString(perm), " is no permutation of ", rank, " axes"));
    }
    seen |= 1u << axis;
    shape.push_back(x.shape[axis]);
    from.push_back(strides[axis]);
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, shape}));
  return StridedMove{shape, from, Strides(shape)};
}

absl::StatusOr<StridedMove> ExpandMove(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& x = spec.inputs[0].type;
  const KernelOperand& operand = spec.inputs[1];
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  if (!IsSmallInts(operand.type)) return Invalid(spec, absl::StrCat("input 1 is ", ToString(operand.type)));
  Shape asked = spec.outputs[0].type.shape;
  if (operand.constant != nullptr) {
    const Ints values = ReadInts(operand.type, operand.constant);
    asked.assign(values.begin(), values.end());
  }
  absl::StatusOr<Shape> shape = BroadcastShape({x.shape, asked});
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, *shape}));
  const size_t before = shape->size() - x.shape.size();
  const Shape strides = Strides(x.shape);
  Shape from(shape->size(), 0);
  for (size_t i = 0; i < x.shape.size(); ++i) from[before + i] = x.shape[i] == 1 ? 0 : strides[i];
  return StridedMove{*shape, from, Strides(*shape)};
}

absl::StatusOr<StridedMove> TileMove(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const KernelOperand& operand = spec.inputs[1];
  const size_t rank = x.shape.size();
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  if (!IsSmallInts(operand.type) || operand.type.elements() != static_cast<int64_t>(rank) ||
      y.shape.size() != rank) {
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(operand.type),
                                      ", wanted one integer an axis of ", ToString(x)));
  }
  Ints repeats(rank, 0);
  for (size_t i = 0; i < rank; ++i) repeats[i] = x.shape[i] == 0 ? 0 : y.shape[i] / x.shape[i];
  if (operand.constant != nullptr) repeats = ReadInts(operand.type, operand.constant);
  // Each axis of the result is two: which copy, and where in the copy.
  const Shape x_strides = Strides(x.shape), y_strides = Strides(y.shape);
  Shape shape = x.shape, views, from, to;
  for (size_t i = 0; i < rank; ++i) {
    if (repeats[i] < 0) return Invalid(spec, absl::StrCat("a negative number of repeats ", repeats[i]));
    shape[i] *= repeats[i];
    views.insert(views.end(), {repeats[i], x.shape[i]});
    from.insert(from.end(), {0, x_strides[i]});
    to.insert(to.end(), {x.shape[i] * y_strides[i], y_strides[i]});
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, shape}));
  return StridedMove{views, from, to};
}

}  // namespace pipec
