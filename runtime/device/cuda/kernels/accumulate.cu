// Accumulate (sum, x) -> (sum'): x in microbatch 0, else sum + x, in the type of sum; sum' lies where sum lies. With the
// attribute samples, 0 stands for the x of a microbatch that has padding. SquaredNorm (g) -> (n): float64, in an order that
// the number of elements alone decides.
#include "runtime/base/status.h"
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
                   int64_t samples) {
  const bool first = scalars->microbatch == 0, padded = scalars->valid_samples < samples;
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
                  n, vectors, arguments.scalars, samples);
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

template <typename T>
__global__ void __launch_bounds__(kThreads) SquaresOfBlock(const T* g, int64_t n, double* partial) {
  double total = 0;
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) {
    const double value = Widen(g[i]);
    total += value * value;
  }
  total = FoldThreads<SumOf, kThreads>(total, 0.0);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads) AddUp(const double* partial, int count, double* total) {
  double value = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) value += partial[i];
  value = FoldThreads<SumOf, kThreads>(value, 0.0);
  if (threadIdx.x == 0) *total = value;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSquaredNorm(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kFloat64, 1));
  const int64_t n = type.elements();
  const int blocks = static_cast<int>(std::clamp<int64_t>(n / (8 * kThreads), 1, 1024));
  return ForAllFloats(spec, type.dtype, [n, blocks](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t workspace = blocks * static_cast<int64_t>(sizeof(double));
    return MakeKernel(
        workspace, [n, blocks](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          auto* const partial = static_cast<double*>(arguments.workspace);
          RETURN_IF_ERROR(
              Launch(SquaresOfBlock<T>, blocks, kThreads, stream, Input<T>(arguments, 0), n, partial));
          return Launch(AddUp, 1, kThreads, stream, partial, blocks, Output<double>(arguments, 0));
        });
  });
}

}  // namespace

void RegisterAccumulateKernels(KernelRegistry& registry) {
  registry.Add("Accumulate", kPipecDomain, PrepareAccumulate);
  registry.Add("SquaredNorm", kPipecDomain, PrepareSquaredNorm);
}

}  // namespace pipec::cuda
