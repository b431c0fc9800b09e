// Transpose.
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const int rank = static_cast<int>(x.shape.size());
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  std::vector<int64_t> perm = spec.attributes.Ints("perm");
  if (!spec.attributes.Has("perm")) {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  if (static_cast<int>(perm.size()) != rank) {
    return Invalid(spec, absl::StrCat("perm has ", perm.size(), " axes, the operand has ", rank));
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
  return std::make_unique<CopyKernel>(StridedCopy(SizeOf(x.dtype), shape, from, Strides(shape)));
}

}  // namespace

void RegisterTransposeKernels(KernelRegistry& registry) { registry.Add("Transpose", "", Prepare); }

}  // namespace pipec::cpu
