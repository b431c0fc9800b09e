// EyeLike (X) -> (Y): 1 on a diagonal, 0 elsewhere; of X only the shape counts.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/small_floats.h"
#include "runtime/device/cpu/kernels/typed.h"

namespace pipec::cpu {
namespace {

template <typename T>
T One() {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(1);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(1);
  } else {
    return T{1};
  }
}

using AllTypes = TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t,
                          uint8_t, bool, Float16, BFloat16>;

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType &x = spec.inputs[0].type;
  if (x.shape.size() != 2) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted a matrix"));
  const auto dtype = static_cast<DType>(spec.attributes.Int("dtype", static_cast<int64_t>(x.dtype)));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, x.shape}));
  const int64_t rows = x.shape[0], columns = x.shape[1], k = spec.attributes.Int("k", 0);
  auto kernel = ForType<std::unique_ptr<Kernel>>(AllTypes(), dtype, [=](auto t) {
    using T = typename decltype(t)::type;
    return MakeKernel(0, [=](const KernelArguments &arguments) {
      T *const y = Output<T>(arguments, 0);
      std::memset(y, 0, rows * columns * sizeof(T));
      if (k >= columns || k <= -rows) return absl::OkStatus();  // the diagonal is outside
      for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row)
        y[row * columns + row + k] = One<T>();
      return absl::OkStatus();
    });
  });
  if (kernel == nullptr) return NoKernelFor(spec, dtype);
  return kernel;
}

}  // namespace

void RegisterEyeLikeKernels(KernelRegistry &registry) { registry.Add("EyeLike", "", Prepare); }

}  // namespace pipec::cpu
