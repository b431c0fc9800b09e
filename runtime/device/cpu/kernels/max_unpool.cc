// MaxUnpool (X, I, output_shape?) -> (Y): zeros with each element of X where I
// says it came from. Places count over the whole tensor that MaxPool read,
// row-major, which is Y or, with output_shape, a tensor inside of it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"

namespace pipec::cpu {
namespace {

// The shape that MaxPool read, by the attributes.
absl::StatusOr<Shape> PooledShape(const KernelSpec &spec) {
  const Shape &x = spec.inputs[0].type.shape;
  if (x.size() < 3) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 3 or more"));
  const size_t rank = x.size() - 2;
  const std::vector<int64_t> kernel = spec.attributes.Ints("kernel_shape");
  std::vector<int64_t> strides = spec.attributes.Ints("strides"), pads = spec.attributes.Ints("pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank) {
    return Invalid(spec, absl::StrCat("kernel_shape, strides and pads do not fit ", rank, " spatial axes"));
  }
  Shape shape = x;
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    for (int64_t value : {kernel[i], strides[i], pads[i], pads[rank + i], x[2 + i]}) {
      if (value < 0 || value >= kMost)
        return Invalid(spec, absl::StrCat("kernel, stride or padding ", value));
    }
    shape[2 + i] = (x[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i];
    if (shape[2 + i] < 0) return Invalid(spec, "the padding is wider than what the kernel reads");
  }
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, x.shape}));
  ASSIGN_OR_RETURN(const Shape pooled, PooledShape(spec));
  if (y.shape.size() != x.shape.size()) return Invalid(spec, absl::StrCat("Y is ", ToString(y)));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, Has(spec, 2) ? y.shape : pooled}));
  for (size_t i = 0; i < pooled.size(); ++i) {
    if (pooled[i] > y.shape[i]) {
      return Invalid(spec, absl::StrCat("Y is ", ToString(y), ", what was pooled ", ToString(pooled)));
    }
  }
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
