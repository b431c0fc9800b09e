// RandomUniform () -> (Y), RandomNormal () -> (Y), their Like forms (X) -> (Y), of whose X only the shape
// counts, and Multinomial (X) -> (Y): classes drawn by the log-probabilities X (N, classes), Y (N, draws).
// Draws are Philox4x32-10's as for Dropout (compiler/ops/README.md): they depend on seed, step, sample,
// node and element within the sample alone. A uniform draw takes one word, a normal one two.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/philox.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/samples.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kWords = 4 * kPhiloxLanes;

struct Draws {
  Samples samples;
  uint32_t key = 0;
};

// draw(i, words) for every element i, with its kWordsEach words.
template <int kWordsEach, typename F>
void ForEachDraw(const Draws& draws, const StepScalars& scalars, const F& draw) {
  constexpr int64_t kBlock = kWords / kWordsEach;
  const Samples& s = draws.samples;
  ParallelFor(s.elements(), 16 * kBlock, [&](int64_t begin, int64_t end) {
    uint32_t words[kWords];
    // Runs of elements that lie together in memory, belong to one sample and stay within one block of words.
    for (int64_t i = begin; i < end;) {
      const int64_t inside = i % s.inner, run = i / s.inner;
      const int64_t sample = run % s.count, element = run / s.count * s.inner + inside;
      const int64_t n = std::min({end - i, s.inner - inside, kBlock - element % kBlock});
      const int64_t global = s.known ? scalars.first_sample + sample : 0;
      Philox(static_cast<uint32_t>(element / kBlock * kPhiloxLanes), draws.key,
             static_cast<uint32_t>(scalars.step), static_cast<uint32_t>(global), scalars.seed, words);
      for (int64_t k = 0; k < n; ++k) draw(i + k, words + (element % kBlock + k) * kWordsEach);
      i += n;
    }
  });
}

// In [0, 1): with as many bits as T holds below 1.
template <typename T>
T Unit(uint32_t word) {
  if constexpr (sizeof(T) == sizeof(float)) return static_cast<T>(word >> 8) * T{0x1p-24};
  return static_cast<T>(word * 0x1p-32);
}

// Box and Muller's, "A note on the generation of random normal deviates" (1958).
double Normal(const uint32_t* words) {
  const double radius = std::sqrt(-2 * std::log((words[0] + 1.0) * 0x1p-32));
  return radius * std::cos(2 * M_PI * (words[1] * 0x1p-32));
}

absl::StatusOr<Draws> ReadDraws(const KernelSpec& spec, const Shape& shape) {
  Draws draws{.key = static_cast<uint32_t>(spec.attributes.Int("key"))};
  ASSIGN_OR_RETURN(draws.samples, Samples::Of(spec, shape));
  return draws;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, bool like, bool normal) {
  const int inputs = like ? 1 : 0;
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = inputs, .max_inputs = inputs}));
  const TensorType& y = spec.outputs[0].type;
  if (like) RETURN_IF_ERROR(CheckOutput(spec, 0, {y.dtype, spec.inputs[0].type.shape}));
  ASSIGN_OR_RETURN(const Draws draws, ReadDraws(spec, y.shape));
  const float first = normal ? spec.attributes.Float("mean", 0) : spec.attributes.Float("low", 0),
              second = normal ? spec.attributes.Float("scale", 1) : spec.attributes.Float("high", 1);
  if (std::isnan(first) || std::isnan(second) || (normal ? second < 0 : second < first))
    return Invalid(spec,
                   absl::StrCat(normal ? "mean and scale are " : "low and high are ", first, ", ", second));
  return ForFloats(spec, y.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      T* const y = Output<T>(arguments, 0);
      if (normal) {
        ForEachDraw<2>(draws, *arguments.scalars, [&](int64_t i, const uint32_t* words) {
          y[i] = static_cast<T>(first + second * Normal(words));
        });
      } else {
        const T low = first, width = static_cast<T>(second) - static_cast<T>(first);
        ForEachDraw<1>(draws, *arguments.scalars,
                       [&](int64_t i, const uint32_t* words) { y[i] = low + width * Unit<T>(*words); });
      }
      return absl::OkStatus();
    });
  });
}

// The class at which the sum of probabilities passes `part` of the whole.
template <typename T>
int64_t Pick(const T* logits, int64_t classes, double part) {
  const double most = static_cast<double>(*std::max_element(logits, logits + classes));
  double whole = 0;
  for (int64_t c = 0; c < classes; ++c) whole += std::exp(static_cast<double>(logits[c]) - most);
  double sum = 0;
  for (int64_t c = 0; c + 1 < classes; ++c) {
    sum += std::exp(static_cast<double>(logits[c]) - most);
    if (sum > part * whole) return c;
  }
  return classes - 1;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMultinomial(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const int64_t count = spec.attributes.Int("sample_size", 1);
  if (x.shape.size() != 2 || x.shape[1] < 1 || count < 0)
    return Invalid(spec,
                   absl::StrCat("X is ", ToString(x), ", sample_size ", count, ", wanted (N, classes)"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {y.dtype, {x.shape[0], count}}));
  if (y.dtype != DType::kInt32 && y.dtype != DType::kInt64) return NoKernelFor(spec, y.dtype);
  ASSIGN_OR_RETURN(const Draws draws, ReadDraws(spec, y.shape));
  const bool wide = y.dtype == DType::kInt64;
  return ForFloats(spec, x.dtype, [=, classes = x.shape[1]](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      ForEachDraw<1>(draws, *arguments.scalars, [&](int64_t i, const uint32_t* words) {
        const int64_t drawn = Pick(Input<T>(arguments, 0) + i / count * classes, classes, *words * 0x1p-32);
        if (wide) {
          Output<int64_t>(arguments, 0)[i] = drawn;
        } else {
          Output<int32_t>(arguments, 0)[i] = static_cast<int32_t>(drawn);
        }
      });
      return absl::OkStatus();
    });
  });
}

template <bool kLike, bool kNormal>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareFloats(const KernelSpec& spec) {
  return Prepare(spec, kLike, kNormal);
}

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  registry.Add("RandomUniform", "", PrepareFloats<false, false>);
  registry.Add("RandomNormal", "", PrepareFloats<false, true>);
  registry.Add("RandomUniformLike", "", PrepareFloats<true, false>);
  registry.Add("RandomNormalLike", "", PrepareFloats<true, true>);
  registry.Add("Multinomial", "", PrepareMultinomial);
}

}  // namespace pipec::cpu
