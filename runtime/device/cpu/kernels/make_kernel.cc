#include "runtime/device/cpu/kernels/make_kernel.h"

#include "absl/strings/str_cat.h"

namespace pipec::cpu {
namespace {

absl::Status CheckElements(const KernelSpec& spec, absl::string_view what, int i, const TensorType& got,
                           DType dtype, int64_t elements) {
  if (got.dtype == dtype && got.elements() == elements) return absl::OkStatus();
  return Invalid(spec, absl::StrCat(what, " ", i, " is ", ToString(got), ", wanted ", elements,
                                    " elements of ", Name(dtype)));
}

}  // namespace

absl::Status CheckInput(const KernelSpec& spec, int i, const TensorType& wanted) {
  if (!Has(spec, i) || spec.inputs[i].type == wanted) return absl::OkStatus();
  return Invalid(
      spec, absl::StrCat("input ", i, " is ", ToString(spec.inputs[i].type), ", wanted ", ToString(wanted)));
}

absl::Status CheckInputElements(const KernelSpec& spec, int i, DType dtype, int64_t elements) {
  if (!Has(spec, i)) return absl::OkStatus();
  return CheckElements(spec, "input", i, spec.inputs[i].type, dtype, elements);
}

absl::Status CheckOutputElements(const KernelSpec& spec, int i, DType dtype, int64_t elements) {
  if (!HasOutput(spec, i)) return absl::OkStatus();
  return CheckElements(spec, "output", i, spec.outputs[i].type, dtype, elements);
}

bool HasOutput(const KernelSpec& spec, int i) {
  return i < static_cast<int>(spec.outputs.size()) && spec.outputs[i].present;
}

}  // namespace pipec::cpu
