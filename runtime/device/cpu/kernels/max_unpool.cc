// MaxUnpool (X, I, output_shape?) -> (Y): zeros with each element of X where I
// says it came from. Places count over the whole tensor that MaxPool read,
// row-major, which is Y or, with output_shape, a tensor inside of it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/blocks.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Shape pooled, PooledShapeOf(spec));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const int64_t n = x.elements(), places = NumElements(pooled), elements = y.elements();
  return ForFloats(spec, x.dtype, [=, strides = Strides(y.shape)](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments &arguments) -> absl::Status {
      T *const result = Output<T>(arguments, 0);
      std::fill_n(result, elements, T{0});
      const int64_t *const index = Input<int64_t>(arguments, 1);
      for (int64_t i = 0; i < n; ++i) {
        if (index[i] < 0 || index[i] >= places) {
          return absl::InvalidArgumentError(
              absl::StrCat("index ", index[i], " at position ", i, " is outside [0,", places - 1, "]"));
        }
        int64_t at = 0, rest = index[i];
        for (size_t axis = pooled.size(); axis-- > 0; rest /= pooled[axis])
          at += rest % pooled[axis] * strides[axis];
        result[at] = Input<T>(arguments, 0)[i];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterMaxUnpoolKernels(KernelRegistry &registry) { registry.Add("MaxUnpool", "", Prepare); }

}  // namespace pipec::cpu
