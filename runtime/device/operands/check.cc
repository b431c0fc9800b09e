#include "runtime/device/operands/check.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckCount(const KernelSpec& spec, const std::vector<KernelOperand>& operands,
                        absl::string_view what, int least, int most) {
  const int n = static_cast<int>(operands.size());
  if (n < least || n > most) {
    return Invalid(spec, absl::StrCat("has ", n, " ", what, "s, wanted ", least, " to ", most));
  }
  for (int k = 0; k < n; ++k) {
    const KernelOperand& operand = operands[k];
    if (!operand.present) {
      if (k < least) return Invalid(spec, absl::StrCat(what, " ", k, " is absent, but required"));
      continue;
    }
    if (operand.type.shape.size() > kMaxRank) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): ", what, " ", k,
                                                   " has rank ", operand.type.shape.size(), ", at most ",
                                                   kMaxRank, " is taken"));
    }
    for (int64_t dim : operand.type.shape) {
      if (dim < 0) return Invalid(spec, absl::StrCat(what, " ", k, " has a negative dimension ", dim));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElements(const KernelSpec& spec, absl::string_view what, int k, const TensorType& got,
                           DType dtype, int64_t elements) {
  if (got.dtype == dtype && got.elements() == elements) return absl::OkStatus();
  return Invalid(spec, absl::StrCat(what, " ", k, " is ", ToString(got), ", wanted ",
                                    Counted(elements, "element", "elements"), " of ", Name(dtype)));
}

}  // namespace

absl::Status CheckOperands(const KernelSpec& spec, const OperandCounts& counts) {
  RETURN_IF_ERROR(CheckCount(spec, spec.inputs, "input", counts.min_inputs, counts.max_inputs));
  return CheckCount(spec, spec.outputs, "output", counts.min_outputs, counts.max_outputs);
}

absl::Status CheckOutput(const KernelSpec& spec, int k, const TensorType& wanted) {
  const TensorType& got = spec.outputs[k].type;
  if (got == wanted) return absl::OkStatus();
  return Invalid(spec, absl::StrCat("output ", k, " is ", ToString(got), ", wanted ", ToString(wanted)));
}

absl::Status CheckInputType(const KernelSpec& spec, int k, DType wanted) {
  const DType got = spec.inputs[k].type.dtype;
  if (got == wanted) return absl::OkStatus();
  return Invalid(spec, absl::StrCat("input ", k, " is ", Name(got), ", wanted ", Name(wanted)));
}

absl::Status Invalid(const KernelSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("node '", spec.name, "' (", spec.op, "): ", what));
}

absl::Status NoKernelFor(const KernelSpec& spec, DType dtype) {
  return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                               "): this device has no kernel for ", Name(dtype),
                                               "; cast to a type it has, such as float32 or int64"));
}

absl::StatusOr<int> NormaliseAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is outside [", -rank, ",", rank - 1, "]"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Ints ReadInts(const TensorType& type, const void* data) {
  Ints values(type.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = type.dtype == DType::kInt32 ? static_cast<const int32_t*>(data)[i]
                                            : static_cast<const int64_t*>(data)[i];
  }
  return values;
}

bool IsSmallInts(const TensorType& type) {
  return (type.dtype == DType::kInt32 || type.dtype == DType::kInt64) && type.shape.size() <= 1 &&
         type.elements() <= 2 * kMaxRank;
}

bool Has(const KernelSpec& spec, int k) {
  return k < static_cast<int>(spec.inputs.size()) && spec.inputs[k].present;
}

bool HasOutput(const KernelSpec& spec, int k) {
  return k < static_cast<int>(spec.outputs.size()) && spec.outputs[k].present;
}

absl::Status CheckInput(const KernelSpec& spec, int k, const TensorType& wanted) {
  if (!Has(spec, k) || spec.inputs[k].type == wanted) return absl::OkStatus();
  return Invalid(
      spec, absl::StrCat("input ", k, " is ", ToString(spec.inputs[k].type), ", wanted ", ToString(wanted)));
}

absl::Status CheckInputElements(const KernelSpec& spec, int k, DType dtype, int64_t elements) {
  if (!Has(spec, k)) return absl::OkStatus();
  return CheckElements(spec, "input", k, spec.inputs[k].type, dtype, elements);
}

absl::Status CheckOutputElements(const KernelSpec& spec, int k, DType dtype, int64_t elements) {
  if (!HasOutput(spec, k)) return absl::OkStatus();
  return CheckElements(spec, "output", k, spec.outputs[k].type, dtype, elements);
}

absl::Status CheckIndexType(const KernelSpec& spec, int k) {
  const DType dtype = spec.inputs[k].type.dtype;
  if (dtype == DType::kInt64 || dtype == DType::kInt32) return absl::OkStatus();
  return Invalid(spec, absl::StrCat("indices are ", Name(dtype), ", wanted int64 or int32"));
}

}  // namespace pipec
