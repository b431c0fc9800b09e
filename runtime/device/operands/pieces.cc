// Concat and Split: pieces of one tensor along an axis, and the other way round.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/move.h"

namespace pipec {
namespace {

// The pieces of `whole` along `axis`, with their shapes checked. `into`: the pieces are copied into the
// whole.
absl::StatusOr<std::vector<StridedMove>> Pieces(const KernelSpec& spec, const TensorType& whole, int axis,
                                                absl::Span<const Shape> shapes, bool into) {
  if (SizeOf(whole.dtype) == 0) return NoKernelFor(spec, whole.dtype);
  const Shape strides = Strides(whole.shape);
  std::vector<StridedMove> pieces;
  int64_t at = 0;
  for (const Shape& shape : shapes) {
    Shape wanted = whole.shape;
    if (shape.size() == wanted.size()) wanted[axis] = shape[axis];
    if (shape != wanted) {
      return Invalid(spec, absl::StrCat("piece ", pieces.size(), " is ", ToString(shape), " of ",
                                        ToString(whole.shape), " on axis ", axis));
    }
    const Shape own = Strides(shape);
    const int64_t offset = at * strides[axis];
    pieces.push_back(into ? StridedMove{shape, own, strides, 0, offset}
                          : StridedMove{shape, strides, own, offset, 0});
    at += shape[axis];
  }
  if (at != whole.shape[axis]) {
    return Invalid(spec, absl::StrCat("the pieces have ", at, " in all on axis ", axis, ", the whole has ",
                                      whole.shape[axis]));
  }
  return pieces;
}

}  // namespace

absl::StatusOr<std::vector<StridedMove>> ConcatMoves(const KernelSpec& spec) {
  const int n = std::max(static_cast<int>(spec.inputs.size()), 1);
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = n, .max_inputs = n}));
  const TensorType& whole = spec.outputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(whole.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    RETURN_IF_ERROR(CheckInputType(spec, k, whole.dtype));
    shapes.push_back(spec.inputs[k].type.shape);
  }
  return Pieces(spec, whole, *axis, shapes, /*into=*/true);
}

// The sizes of the pieces: input 1 if it is known, equal parts of which the last may be smaller, or (input 1
// known at launch only) what the plan says. An absent result has its place too, so its size must follow from
// the others.
absl::StatusOr<std::vector<StridedMove>> SplitMoves(const KernelSpec& spec) {
  const int n = std::max(static_cast<int>(spec.outputs.size()), 1);
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 1, .max_inputs = 2, .min_outputs = 0, .max_outputs = n}));
  const TensorType& whole = spec.inputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(whole.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  const int64_t parts = spec.attributes.Int("num_outputs", n);
  if (parts != n)
    return Invalid(spec, absl::StrCat("has ", Counted(n, "output", "outputs"), ", num_outputs is ", parts));
  const int64_t equal = (whole.shape[*axis] + n - 1) / n;
  int64_t left = whole.shape[*axis];
  Ints sizes;
  if (Has(spec, 1) && spec.inputs[1].constant != nullptr) {
    if (spec.inputs[1].type != TensorType{DType::kInt64, {n}}) {
      return Invalid(spec,
                     absl::StrCat("input 1 is ", ToString(spec.inputs[1].type), ", wanted int64[", n, "]"));
    }
    sizes = ReadInts(spec.inputs[1].type, spec.inputs[1].constant);
  } else {
    for (int k = 0; k < n; ++k) {
      const KernelOperand& output = spec.outputs[k];
      const bool free = Has(spec, 1) && output.present && output.type.shape.size() == whole.shape.size();
      sizes.push_back(free ? output.type.shape[*axis] : std::min(equal, left));
      left -= sizes.back();
    }
  }
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    if (sizes[k] < 0) return Invalid(spec, absl::StrCat("piece ", k, " has a negative size ", sizes[k]));
    Shape shape = whole.shape;
    shape[*axis] = sizes[k];
    if (spec.outputs[k].present) RETURN_IF_ERROR(CheckOutput(spec, k, {whole.dtype, shape}));
    shapes.push_back(shape);
  }
  return Pieces(spec, whole, *axis, shapes, /*into=*/false);
}

}  // namespace pipec
