// MaxPoolGrad (dY, Indices) -> (dX): dY added to where MaxPool read it. AveragePoolGrad (dY) -> (dX): every tap of
// a window that lies inside gets an equal share. The attributes are the forward op's. A thread a place of X, which
// adds up what the windows that read it give, in their order: results repeat bit by bit.
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/row_walk.cuh"
#include "runtime/device/cuda/kernels/window_walk.cuh"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/pooling.h"

namespace pipec::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MaxGradient(const DeviceWindows windows, int64_t planes, const T* dy, const int64_t* indices, T* dx,
                bool column_major, const FaultSite site) {
  const auto& [depth, height, width] = windows;
  const int in = depth.in * height.in * width.in, out = depth.out * height.out * width.out;
  for (RowWalk walk(FirstThread(), AllThreads(), in); walk.row() < planes; walk.Next()) {
    const int64_t plane = walk.row();
    const int place = static_cast<int>(walk.item()), line = place / width.in;
    const int own = column_major ? ((place - line * width.in) * height.in + line % height.in) * depth.in +
                                       line / height.in
                                 : place;
    Compute<T> sum = 0;
    ForEachReader(windows, place, [&](int window, int, int, int) {
      const int64_t at = plane * out + window, index = indices[at] - plane * in;
      if (index < 0 || index >= in) LeaveNote(site, indices[at], at);
      if (index == own) sum += Widen(dy[at]);
    });
    dx[plane * in + walk.item()] = Narrow<T>(sum);
  }
}

// Without the exact division's detour for subnormal divisors: registers would be spilled around it.
__device__ __forceinline__ float Share(float x, int count) {
  return __fdividef(x, static_cast<float>(count));
}
__device__ __forceinline__ double Share(double x, int count) { return x / count; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    AverageGradient(const DeviceWindows windows, int64_t planes, const T* dy, T* dx, bool count_padding) {
  const auto& [depth, height, width] = windows;
  const int in = depth.in * height.in * width.in, out = depth.out * height.out * width.out;
  for (RowWalk walk(FirstThread(), AllThreads(), in); walk.row() < planes; walk.Next()) {
    const int64_t plane = walk.row();
    Compute<T> sum = 0;
    ForEachReader(windows, static_cast<int>(walk.item()), [&](int window, int d, int h, int w) {
      const int counted = windows.depth.Counted(d, count_padding) * windows.height.Counted(h, count_padding) *
                          windows.width.Counted(w, count_padding);
      sum += Share(Widen(dy[plane * out + window]), counted);
    });
    dx[plane * in + walk.item()] = Narrow<T>(sum);
  }
}

absl::StatusOr<Pooling> ReadGradient(const KernelSpec& spec) {
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const TensorType& dy = spec.inputs[0].type;
  const Shape x(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, x}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, x, dy.shape));
  RETURN_IF_ERROR(CheckPlaneFits(spec, pooling.windows));
  return pooling;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMax(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, type.shape}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadGradient(spec));
  const int64_t results = pooling.planes * pooling.windows.places();
  const FaultSite site = context.AddFaultSite(spec, "index", "inside its plane of X");
  return ForAllFloats(spec, type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (results == 0) return absl::OkStatus();
      return Launch(MaxGradient<T>, BlocksFor(results), kThreads, stream, OnDevice(pooling.windows),
                    pooling.planes, Input<T>(arguments, 0), Input<int64_t>(arguments, 1),
                    Output<T>(arguments, 0), pooling.column_major, site);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAverage(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadGradient(spec));
  const int64_t results = pooling.planes * pooling.windows.places();
  return ForAllFloats(spec, spec.inputs[0].type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (results == 0) return absl::OkStatus();
      return Launch(AverageGradient<T>, BlocksFor(results), kThreads, stream, OnDevice(pooling.windows),
                    pooling.planes, Input<T>(arguments, 0), Output<T>(arguments, 0), pooling.count_padding);
    });
  });
}

}  // namespace

void RegisterPoolGradKernels(KernelRegistry& registry) {
  registry.Add("MaxPoolGrad", kPipecDomain, PrepareMax);
  registry.Add("AveragePoolGrad", kPipecDomain, PrepareAverage);
}

}  // namespace pipec::cuda
