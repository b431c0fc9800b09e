// TanhGrad, SigmoidGrad, ReluGrad (dY, Y) -> (dX): written with the forward result. dX may lie where dY or Y
// lies.
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

struct TanhGrad {
  template <typename T>
  static PIPEC_INLINE T Of(T dy, T y) {
    return dy * (T{1} - y * y);
  }
};

struct SigmoidGrad {
  template <typename T>
  static PIPEC_INLINE T Of(T dy, T y) {
    return dy * (y * (T{1} - y));
  }
};

struct ReluGrad {
  template <typename T>
  static PIPEC_INLINE T Of(T dy, T y) {
    return y > T{0} ? dy : T{0};
  }
};

template <typename Gradient>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradient(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  return ForFloats(spec, type.dtype, [n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [n](const KernelArguments& arguments) {
      const T* dy = Input<T>(arguments, 0);
      const T* y = Input<T>(arguments, 1);
      T* dx = Output<T>(arguments, 0);
      ParallelFor(n, 8192, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) dx[i] = Gradient::Of(dy[i], y[i]);
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterActivationGradKernels(KernelRegistry& registry) {
  registry.Add("TanhGrad", kPipecDomain, PrepareGradient<TanhGrad>);
  registry.Add("SigmoidGrad", kPipecDomain, PrepareGradient<SigmoidGrad>);
  registry.Add("ReluGrad", kPipecDomain, PrepareGradient<ReluGrad>);
}

}  // namespace pipec::cpu
