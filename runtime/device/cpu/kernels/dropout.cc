// Dropout (X) -> (Y, mask?) and DropoutGrad (dY) -> (dX): the mask is drawn from Philox4x32-10 as
// compiler/ops/README.md says, so that it depends on seed, step, sample, node and element alone and the
// gradient can draw it again. The result may lie where X lies.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/philox.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/samples.h"

namespace pipec::cpu {
namespace {

// Elements drawn at a time: whole counters of four.
constexpr int64_t kBlock = 4 * kPhiloxLanes;

struct Draw {
  uint64_t seed;
  uint32_t key, step;
  uint64_t threshold;  // kept if word >= threshold; 2^32 keeps nothing
};

// Elements first .. first + n of one sample, n at most kBlock and not across a multiple of kBlock.
template <typename T>
void ApplyBlock(const Draw& draw, uint32_t sample, int64_t first, int64_t n, T scale, const T* x, T* y,
                bool* mask) {
  uint32_t words[kBlock];
  const int64_t block = first / kBlock * kBlock;
  Philox(static_cast<uint32_t>(block / 4), draw.key, draw.step, sample, draw.seed, words);
  const uint32_t* word = words + (first - block);
  if (draw.threshold > 0xFFFFFFFF) {
    std::fill(y, y + n, T{0});
    if (mask != nullptr) std::fill(mask, mask + n, false);
    return;
  }
  const auto threshold = static_cast<uint32_t>(draw.threshold);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = word[i] >= threshold ? x[i] * scale : T{0};
  if (mask != nullptr) {
    for (int64_t i = 0; i < n; ++i) mask[i] = word[i] >= threshold;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutput(spec, 0, type));
  const bool has_mask = HasOutput(spec, 1);
  if (has_mask) RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kBool, type.shape}));
  const double ratio = spec.attributes.Float("ratio", 0.5f);
  if (!(ratio >= 0 && ratio <= 1)) return Invalid(spec, absl::StrCat("ratio is ", ratio, ", wanted 0 to 1"));
  // Without a batch axis all is one sample, number 0.
  ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, type.shape));
  const auto threshold = static_cast<uint64_t>(std::ceil(ratio * 4294967296.0));
  const auto key = static_cast<uint32_t>(spec.attributes.Int("key"));
  return ForFloats(spec, type.dtype, [=, elements = type.elements()](auto zero) {
    using T = decltype(zero);
    const T scale = ratio < 1 ? static_cast<T>(1 / (1 - ratio)) : T{0};
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T* x = Input<T>(arguments, 0);
      T* y = Output<T>(arguments, 0);
      bool* mask = has_mask ? Output<bool>(arguments, 1) : nullptr;
      const StepScalars& scalars = *arguments.scalars;
      if (!scalars.training) {
        if (x != y) std::memcpy(y, x, elements * sizeof(T));
        if (mask != nullptr) std::fill(mask, mask + elements, true);
        return absl::OkStatus();
      }
      const Draw draw{scalars.seed, key, static_cast<uint32_t>(scalars.step), threshold};
      ParallelFor(elements, 16 * kBlock, [&](int64_t begin, int64_t end) {
        // Runs of elements that lie together in memory, belong to one sample and stay within one block of the
        // draw.
        for (int64_t i = begin; i < end;) {
          const int64_t inside = i % samples.inner, run = i / samples.inner;
          const int64_t sample = run % samples.count, element = run / samples.count * samples.inner + inside;
          const int64_t n = std::min({end - i, samples.inner - inside, kBlock - element % kBlock});
          const int64_t global = samples.known ? scalars.first_sample + sample : 0;
          ApplyBlock(draw, static_cast<uint32_t>(global), element, n, scale, x + i, y + i,
                     mask == nullptr ? nullptr : mask + i);
          i += n;
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1, 1, 2}));
  return Prepare(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  return Prepare(spec);
}

}  // namespace

void RegisterDropoutKernels(KernelRegistry& registry) {
  registry.Add("Dropout", kPipecDomain, PrepareForward);
  registry.Add("DropoutGrad", kPipecDomain, PrepareGrad);
}

}  // namespace pipec::cpu
