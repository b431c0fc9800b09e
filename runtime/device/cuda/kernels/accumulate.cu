// Accumulate (sum, x) -> (sum'): x in microbatch 0, else sum + x, in the type of sum; sum' lies where sum lies.
// With the attribute samples, 0 stands for the x of a microbatch that has padding. SquaredNorm (g) -> (n): float64,
// by all of the device (device_wide.h).
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/device_wide.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// Elements that a thread takes at once: 16 bytes of the sum, if x has the same type.
template <typename S, typename T>
__global__ void __launch_bounds__(kThreads)
    AccumulateInto(const S* sum, const T* x, S* out, int64_t n, int64_t vectors, const StepScalars* scalars,
                   int64_t samples, bool first) {
  const bool padded = scalars->valid_samples < samples;
  if (padded && !first) {
    for (int64_t i = FirstItem(); i < n && sum != out; i += ItemStride()) out[i] = sum[i];
    return;
  }
  if constexpr (sizeof(S) == sizeof(T)) {
    constexpr int kSize = Vector<S>::kSize;
    for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
      const Vector<T> addend = LoadVector(x + v * kSize);
      Vector<S> total{};
      if (!first) total = LoadVector(sum + v * kSize);
#pragma unroll
      for (int i = 0; i < kSize; ++i) total.values[i] += padded ? S(0) : static_cast<S>(addend.values[i]);
      StoreVector(out + v * kSize, total);
    }
  }
  for (int64_t i = vectors * Vector<S>::kSize + FirstItem(); i < n; i += ItemStride()) {
    out[i] = (first ? S(0) : sum[i]) + (padded ? S(0) : static_cast<S>(x[i]));
  }
}

template <typename S, typename T>
std::unique_ptr<Kernel> AccumulateKernel(int64_t n, int64_t samples) {
  return MakeKernel(0, [n, samples](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
    if (n == 0) return absl::OkStatus();
    const S* const sum = Input<S>(arguments, 0);
    const T* const x = Input<T>(arguments, 1);
    S* const out = Output<S>(arguments, 0);
    const bool whole = sizeof(S) == sizeof(T) && Aligned(sum) && Aligned(x) && Aligned(out);
    const int64_t vectors = whole ? n / Vector<S>::kSize : 0;
    return Launch(AccumulateInto<S, T>, BlocksFor(vectors > 0 ? vectors : n), kThreads, stream, sum, x, out,
                  n, vectors, arguments.scalars, samples, arguments.first_microbatch);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAccumulate(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType &sum = spec.inputs[0].type, &x = spec.inputs[1].type;
  const int64_t n = sum.elements(), samples = spec.attributes.Int("samples", 0);
  RETURN_IF_ERROR(CheckOutput(spec, 0, sum));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, x.dtype, n));
  const auto is = [&](DType sum_type, DType x_type) { return sum.dtype == sum_type && x.dtype == x_type; };
  if (is(DType::kFloat32, DType::kFloat32)) return AccumulateKernel<float, float>(n, samples);
  if (is(DType::kFloat64, DType::kFloat32)) return AccumulateKernel<double, float>(n, samples);
  if (is(DType::kFloat64, DType::kFloat64)) return AccumulateKernel<double, double>(n, samples);
  if (is(DType::kInt32, DType::kInt32)) return AccumulateKernel<int32_t, int32_t>(n, samples);
  if (is(DType::kInt64, DType::kInt32)) return AccumulateKernel<int64_t, int32_t>(n, samples);
  if (is(DType::kInt64, DType::kInt64)) return AccumulateKernel<int64_t, int64_t>(n, samples);
  return NoKernelFor(spec, x.dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSquaredNorm(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kFloat64, 1));
  return ForAllFloats(spec, type.dtype, [&](auto) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    const int64_t n = type.elements();
    size_t scratch = 0;
    RETURN_IF_ERROR(CudaStatus(DeviceSumBytes(Terms::kSquares, type.dtype, n, &scratch),
                               "the workspace of a device-wide sum"));
    return MakeKernel(
        static_cast<int64_t>(scratch),
        [n, scratch, dtype = type.dtype](cudaStream_t stream, const KernelArguments& arguments) {
          return CudaStatus(DeviceSum(Terms::kSquares, dtype, arguments.inputs[0], n,
                                      Output<double>(arguments, 0), arguments.workspace, scratch, stream),
                            "a device-wide sum");
        });
  });
}

}  // namespace

void RegisterAccumulateKernels(KernelRegistry& registry) {
  registry.Add("Accumulate", kPipecDomain, PrepareAccumulate);
  registry.Add("SquaredNorm", kPipecDomain, PrepareSquaredNorm);
}

}  // namespace pipec::cuda
