// Dropout (X) -> (Y, mask?) and DropoutGrad (dY) -> (dX): the mask is drawn from Philox4x32-10 as
// compiler/ops/README.md says, so that it depends on seed, step, sample, node and element alone and the gradient
// can draw it again. The result may lie where X lies.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/philox.cuh"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/samples.h"

namespace pipec::cuda {
namespace {

struct Draw {
  int64_t count, inner;  // of samples, and elements of one that lie together
  bool known;            // else all is one sample, number 0
  uint32_t key;
  uint64_t threshold;  // kept if word >= threshold; 2^32 keeps nothing
};

// Which sample element i of the tensor belongs to, and which of its elements it is.
struct Place {
  uint32_t sample;
  int64_t element;
};
__device__ __forceinline__ Place PlaceOf(const Draw& draw, int64_t i, const StepScalars& scalars) {
  const int64_t run = i / draw.inner, outer = run / draw.count, sample = run - outer * draw.count;
  return {static_cast<uint32_t>(draw.known ? scalars.first_sample + sample : 0),
          outer * draw.inner + (i - run * draw.inner)};
}
__device__ __forceinline__ Words WordsOf(const Draw& draw, const Place& place, const StepScalars& scalars) {
  return Philox(static_cast<uint32_t>(place.element / 4), draw.key, static_cast<uint32_t>(scalars.step),
                place.sample, scalars.seed);
}

// `groups` of kGroup elements, which are whole counters of four of one sample; then elements one by one. mask may
// be null.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Drop(const T* x, T* y, bool* mask, int64_t n, int64_t groups, const Draw draw, Compute<T> scale,
         const StepScalars* scalars) {
  constexpr int kSize = Vector<T>::kSize, kGroup = kSize < 4 ? 4 : kSize;
  const bool training = scalars->training;
  for (int64_t g = FirstItem(); g < groups; g += ItemStride()) {
    const Place place = PlaceOf(draw, g * kGroup, *scalars);
    bool kept[kGroup];
#pragma unroll
    for (int four = 0; four < kGroup / 4; ++four) {
      const Words words = WordsOf(draw, {place.sample, place.element + 4 * four}, *scalars);
#pragma unroll
      for (int k = 0; k < 4; ++k) kept[4 * four + k] = !training || words.at[k] >= draw.threshold;
    }
#pragma unroll
    for (int part = 0; part < kGroup / kSize; ++part) {
      Vector<T> vector = LoadVector(x + g * kGroup + part * kSize);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        const Compute<T> value = Widen(vector.values[k]);
        vector.values[k] = Narrow<T>(!kept[part * kSize + k] ? Compute<T>(0)
                                     : training              ? value * scale
                                                             : value);
      }
      StoreVector(y + g * kGroup + part * kSize, vector);
    }
    if (mask != nullptr) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) mask[g * kGroup + k] = kept[k];
    }
  }
  for (int64_t i = groups * kGroup + FirstItem(); i < n; i += ItemStride()) {
    const Place place = PlaceOf(draw, i, *scalars);
    const Words words = WordsOf(draw, place, *scalars);
    const bool kept = !training || words.at[place.element % 4] >= draw.threshold;
    const Compute<T> value = Widen(x[i]);
    y[i] = Narrow<T>(!kept ? Compute<T>(0) : training ? value * scale : value);
    if (mask != nullptr) mask[i] = kept;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const bool has_mask = HasOutput(spec, 1);
  if (has_mask) RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kBool, type.shape}));
  const double ratio = spec.attributes.Float("ratio", 0.5f);
  if (!(ratio >= 0 && ratio <= 1)) return Invalid(spec, absl::StrCat("ratio is ", ratio, ", wanted 0 to 1"));
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  const Draw draw{samples.count, std::max<int64_t>(samples.inner, 1), samples.known,
                  static_cast<uint32_t>(spec.attributes.Int("key")),
                  static_cast<uint64_t>(std::ceil(ratio * 4294967296.0))};
  return ForAllFloats(spec, type.dtype, [=, n = type.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    const auto scale = static_cast<Compute<T>>(ratio < 1 ? 1 / (1 - ratio) : 0);
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      constexpr int kGroup = Vector<T>::kSize < 4 ? 4 : Vector<T>::kSize;
      const T* const x = Input<T>(arguments, 0);
      T* const y = Output<T>(arguments, 0);
      const int64_t groups = draw.inner % kGroup == 0 && Aligned(x) && Aligned(y) ? n / kGroup : 0;
      return Launch(Drop<T>, BlocksFor(groups > 0 ? groups : n), kThreads, stream, x, y,
                    has_mask ? Output<bool>(arguments, 1) : nullptr, n, groups, draw, scale,
                    arguments.scalars);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1, 1, 2}));
  return Prepare(spec);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  return Prepare(spec);
}

}  // namespace

void RegisterDropoutKernels(KernelRegistry& registry) {
  registry.Add("Dropout", kPipecDomain, PrepareForward);
  registry.Add("DropoutGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cuda
