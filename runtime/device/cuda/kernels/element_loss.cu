// Losses that compare element by element, summed in float64 over the samples that are not padding:
//   MeanSquaredError, BinaryCrossEntropyWithLogits (output, labels) -> (loss?, weight?), weight: the number of terms
//   ...Grad (dLoss, output, labels) -> (dOutput), 0 for padding; dOutput may lie where output or labels lie
#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/samples.h"

namespace pipec::cuda {
namespace {

struct SquaredError {
  template <typename T>
  static __device__ __forceinline__ double Loss(T x, T z) {
    const double difference = static_cast<double>(x) - static_cast<double>(z);
    return difference * difference;
  }
  template <typename T>
  static __device__ __forceinline__ T Gradient(T d, T x, T z) {
    return T(2) * d * (x - z);
  }
};

struct BinaryCrossEntropy {
  template <typename T>
  static __device__ __forceinline__ double Loss(T x, T z) {
    return (x > T(0) ? x : T(0)) - x * z + log(T(1) + exp(-fabs(x)));
  }
  template <typename T>
  static __device__ __forceinline__ T Gradient(T d, T x, T z) {
    return d * (T(1) / (T(1) + exp(-x)) - z);
  }
};

// Samples, as a kernel takes them.
struct Batch {
  int64_t elements, outer, count, inner;
  bool known;
  __device__ __forceinline__ bool IsPadding(int64_t i, int64_t valid) const {
    return known && i / inner % count >= valid;
  }
};
Batch BatchOf(const Samples& samples) {
  return {samples.elements(), samples.outer, samples.count, std::max<int64_t>(samples.inner, 1),
          samples.known};
}

template <typename Loss, typename T>
__global__ void __launch_bounds__(kThreads)
    LossOfBlock(const T* x, const T* z, const Batch batch, const StepScalars* scalars, double* partial) {
  const int64_t valid = scalars->valid_samples;
  double total = 0;
  for (int64_t i = FirstItem(); i < batch.elements; i += ItemStride()) {
    if (!batch.IsPadding(i, valid)) total += Loss::Loss(Widen(x[i]), Widen(z[i]));
  }
  total = FoldThreads<SumOf, kThreads>(total, 0.0);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) AddUpLoss(const double* partial, int count, const Batch batch,
                                                      const StepScalars* scalars, T* loss, T* weight) {
  double value = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) value += partial[i];
  value = FoldThreads<SumOf, kThreads>(value, 0.0);
  if (threadIdx.x != 0) return;
  if (loss != nullptr) *loss = Narrow<T>(static_cast<Compute<T>>(value));
  if (weight == nullptr) return;
  const int64_t valid = min(max(scalars->valid_samples, int64_t{0}), batch.count);
  *weight =
      Narrow<T>(static_cast<Compute<T>>(batch.known ? batch.outer * batch.inner * valid : batch.elements));
}

template <typename Loss>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 0, 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, type));
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, type.dtype, 1));
  RETURN_IF_ERROR(CheckOutputElements(spec, 1, type.dtype, 1));
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  const bool has_loss = HasOutput(spec, 0), has_weight = HasOutput(spec, 1);
  const Batch batch = BatchOf(samples);
  const int blocks = static_cast<int>(std::clamp<int64_t>(batch.elements / (8 * kThreads), 1, 1024));
  return ForAllFloats(spec, type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t workspace = blocks * static_cast<int64_t>(sizeof(double));
    return MakeKernel(workspace, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      auto* const partial = static_cast<double*>(arguments.workspace);
      RETURN_IF_ERROR(Launch(LossOfBlock<Loss, T>, blocks, kThreads, stream, Input<T>(arguments, 0),
                             Input<T>(arguments, 1), batch, arguments.scalars, partial));
      return Launch(AddUpLoss<T>, 1, kThreads, stream, partial, blocks, batch, arguments.scalars,
                    has_loss ? Output<T>(arguments, 0) : nullptr,
                    has_weight ? Output<T>(arguments, 1) : nullptr);
    });
  });
}

// As MapTwo of pointwise.cuh, but for the padding.
template <typename Loss, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    LossGradient(const T* dloss, const T* x, const T* z, T* dx, const Batch batch, int64_t vectors,
                 const StepScalars* scalars) {
  constexpr int kSize = Vector<T>::kSize;
  using C = Compute<T>;
  const C d = Widen(*dloss);
  const int64_t valid = scalars->valid_samples;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    const Vector<T> in = LoadVector(x + v * kSize), label = LoadVector(z + v * kSize);
    Vector<T> out;
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      const bool padding = batch.IsPadding(v * kSize + k, valid);
      out.values[k] =
          Narrow<T>(padding ? C(0) : Loss::Gradient(d, Widen(in.values[k]), Widen(label.values[k])));
    }
    StoreVector(dx + v * kSize, out);
  }
  for (int64_t i = vectors * kSize + FirstItem(); i < batch.elements; i += ItemStride()) {
    dx[i] = Narrow<T>(batch.IsPadding(i, valid) ? C(0) : Loss::Gradient(d, Widen(x[i]), Widen(z[i])));
  }
}

template <typename Loss>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 3}));
  const TensorType& type = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInputElements(spec, 0, type.dtype, 1));
  RETURN_IF_ERROR(CheckInput(spec, 2, type));
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  return ForAllFloats(spec, type.dtype, [batch = BatchOf(samples)](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [batch](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (batch.elements == 0) return absl::OkStatus();
      const T *const x = Input<T>(arguments, 1), *const z = Input<T>(arguments, 2);
      T* const dx = Output<T>(arguments, 0);
      const bool whole = Aligned(x) && Aligned(z) && Aligned(dx);
      const int64_t vectors = whole ? batch.elements / Vector<T>::kSize : 0;
      return Launch(LossGradient<Loss, T>, BlocksFor(vectors > 0 ? vectors : batch.elements), kThreads,
                    stream, Input<T>(arguments, 0), x, z, dx, batch, vectors, arguments.scalars);
    });
  });
}

}  // namespace

void RegisterElementLossKernels(KernelRegistry& registry) {
  registry.Add("BinaryCrossEntropyWithLogits", kPipecDomain, PrepareForward<BinaryCrossEntropy>);
  registry.Add("BinaryCrossEntropyWithLogitsGrad", kPipecDomain, PrepareGrad<BinaryCrossEntropy>);
  registry.Add("MeanSquaredError", kPipecDomain, PrepareForward<SquaredError>);
  registry.Add("MeanSquaredErrorGrad", kPipecDomain, PrepareGrad<SquaredError>);
}

}  // namespace pipec::cuda
