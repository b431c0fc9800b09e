#include "compiler/ops/infer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/batch_axes.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {

const TensorType& TypeOf(const NodeSpec& spec, int k) { return spec.inputs[k]->type; }

bool Present(const NodeSpec& spec, int k) {
  return k < static_cast<int>(spec.inputs.size()) && spec.inputs[k];
}

absl::Status BadOperands(const NodeSpec& spec, absl::string_view what) {
  std::string node = spec.name.empty() ? "" : absl::StrCat(" (node ", spec.name, ")");
  std::string operands = absl::StrJoin(spec.inputs, ", ", [](std::string* out, const Value* value) {
    absl::StrAppend(out, value ? ToString(value->type) : "absent");
  });
  return absl::InvalidArgumentError(absl::StrCat(spec.op, node, ": operands ", operands, ": ", what));
}

absl::Status CheckOperands(const NodeSpec& spec, int least, int most) {
  const int count = spec.inputs.size();
  if (count < least || count > most) {
    return BadOperands(spec, absl::StrCat("got ", Counted(count, "operand", "operands"), ", wanted ", least,
                                          least == most ? "" : absl::StrCat(" to ", most)));
  }
  for (int k = 0; k < least; ++k) {
    if (!spec.inputs[k]) return BadOperands(spec, absl::StrCat("operand ", k, " is absent but needed"));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const NodeSpec& spec, int least, int most) {
  const int count = spec.outputs.size();
  if (count >= least && count <= most) return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("asked for ", Counted(count, "output", "outputs"), ", has ", least,
                                        least == most ? "" : absl::StrCat(" to ", most)));
}

absl::Status CheckFloat(const NodeSpec& spec, int k) {
  if (IsFloat(TypeOf(spec, k).dtype)) return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("operand ", k, " must be of a float type"));
}

absl::Status CheckSameType(const NodeSpec& spec, int j, int k) {
  if (TypeOf(spec, j) == TypeOf(spec, k)) return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("operands ", j, " and ", k, " must have the same type"));
}

absl::Status CheckScalar(const NodeSpec& spec, int k, DType dtype) {
  if (TypeOf(spec, k).dtype == dtype && TypeOf(spec, k).shape.empty()) return absl::OkStatus();
  return BadOperands(spec, absl::StrCat("operand ", k, " must be a ", Name(dtype), " scalar"));
}

absl::StatusOr<int64_t> CheckedAxis(const NodeSpec& spec, int k, int64_t otherwise) {
  const int64_t rank = TypeOf(spec, k).shape.size();
  const int64_t axis = spec.attributes.Int("axis", otherwise);
  if (axis >= -rank && axis < rank) return NormalizeAxis(axis, rank);
  return BadOperands(spec, absl::StrCat("axis ", axis, " is not within rank ", rank));
}

absl::StatusOr<Shape> ShapeAttribute(const NodeSpec& spec) {
  if (!spec.attributes.Has("shape")) return BadOperands(spec, "attribute shape is missing");
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  return Shape(dims.begin(), dims.end());
}

}  // namespace pipec
