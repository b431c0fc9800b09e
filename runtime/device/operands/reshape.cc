// Identity, Reshape, Flatten, Squeeze, Unsqueeze.
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/move.h"

namespace pipec {
namespace {

// Whether the result has the operand's element type and number of elements, and its shape is `wanted` if that
// is given.
absl::Status CheckCopy(const KernelSpec& spec, const Shape* wanted) {
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  if (wanted != nullptr) RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, *wanted}));
  if (y.dtype != x.dtype || y.elements() != x.elements()) {
    return Invalid(spec, absl::StrCat("output 0 is ", ToString(y), ", but input 0 is ", ToString(x)));
  }
  return absl::OkStatus();
}

// The result's shape with and without the axes named by input 1: `longer` is the one that has them.
absl::StatusOr<Shape> WithoutAxes(const KernelSpec& spec, const Shape& longer) {
  const KernelOperand& operand = spec.inputs[1];
  if (!IsSmallInts(operand.type)) return Invalid(spec, absl::StrCat("input 1 is ", ToString(operand.type)));
  unsigned gone = 0;
  for (int64_t value : ReadInts(operand.type, operand.constant)) {
    absl::StatusOr<int> axis = NormaliseAxis(value, static_cast<int>(longer.size()));
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    if (longer[*axis] != 1)
      return Invalid(spec, absl::StrCat("axis ", value, " of ", ToString(longer), " is not 1"));
    gone |= 1u << *axis;
  }
  Shape shorter;
  for (size_t i = 0; i < longer.size(); ++i) {
    if ((gone >> i & 1) == 0) shorter.push_back(longer[i]);
  }
  return shorter;
}

}  // namespace

absl::Status CheckIdentity(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  return CheckCopy(spec, &spec.inputs[0].type.shape);
}

absl::Status CheckFlatten(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const Shape& x = spec.inputs[0].type.shape;
  const int64_t rank = static_cast<int64_t>(x.size());
  int64_t axis = spec.attributes.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return Invalid(spec, absl::StrCat("axis ", axis, " is outside [", -rank, ",", rank, "]"));
  }
  if (axis < 0) axis += rank;
  const Shape shape = {NumElements(absl::MakeSpan(x).subspan(0, axis)),
                       NumElements(absl::MakeSpan(x).subspan(axis))};
  return CheckCopy(spec, &shape);
}

// The shape operand if it is known: 0 copies a dimension of x (unless allowzero), -1 takes what is left.
absl::Status CheckReshape(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const KernelOperand& operand = spec.inputs[1];
  if (operand.constant == nullptr) return CheckCopy(spec, nullptr);
  if (!IsSmallInts(operand.type)) return Invalid(spec, absl::StrCat("input 1 is ", ToString(operand.type)));
  const Shape& x = spec.inputs[0].type.shape;
  const Ints asked = ReadInts(operand.type, operand.constant);
  Shape shape(asked.begin(), asked.end());
  int64_t known = 1;
  int free = -1;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (shape[i] == 0 && spec.attributes.Int("allowzero", 0) == 0) {
      if (i >= static_cast<int>(x.size()))
        return Invalid(spec, "a 0 in the shape has no dimension of the operand to copy");
      shape[i] = x[i];
    }
    if (shape[i] == -1 && free < 0) {
      free = i;
    } else if (shape[i] < 0) {
      return Invalid(spec, absl::StrCat("cannot reshape ", ToString(x), " to ", ToString(asked)));
    } else {
      known *= shape[i];
    }
  }
  if (free >= 0) {
    if (known == 0)
      return Invalid(spec, absl::StrCat("the -1 of shape ", ToString(asked), " could be anything"));
    shape[free] = NumElements(x) / known;
  }
  return CheckCopy(spec, &shape);
}

absl::Status CheckSqueeze(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 2}));
  const Shape& x = spec.inputs[0].type.shape;
  if (!Has(spec, 1)) {
    Shape shape;
    for (int64_t dim : x) {
      if (dim != 1) shape.push_back(dim);
    }
    return CheckCopy(spec, &shape);
  }
  if (spec.inputs[1].constant == nullptr) return CheckCopy(spec, nullptr);
  ASSIGN_OR_RETURN(const Shape shape, WithoutAxes(spec, x));
  return CheckCopy(spec, &shape);
}

absl::Status CheckUnsqueeze(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  if (spec.inputs[1].constant != nullptr) {
    ASSIGN_OR_RETURN(const Shape shape, WithoutAxes(spec, spec.outputs[0].type.shape));
    if (shape != spec.inputs[0].type.shape) {
      return Invalid(spec, absl::StrCat("output 0 without its new axes is ", ToString(shape), ", input 0 is ",
                                        ToString(spec.inputs[0].type.shape)));
    }
  }
  return CheckCopy(spec, nullptr);
}

}  // namespace pipec
