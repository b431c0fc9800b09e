// The optimizer ops, in place: (p, g, states..., scale) -> (p', states'...). Formulas are those of
// torch.optim (SGD, Adam, AdamW, Adagrad); coefficients are made in float64 and rounded once to the
// parameter's type, as PyTorch does.
//   Sgd: no state. Momentum: v. Adam: m, v. Adagrad: h.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

// A rule is made once a launch and updates one element: the parameter, given its gradient and up to two
// states.
template <typename T>
struct Sgd {
  static constexpr int kStates = 0;
  Sgd(const Attributes&, const StepScalars&, const ParameterScalars& own)
      : lr(static_cast<T>(own.lr)), decay(static_cast<T>(own.weight_decay)) {}
  PIPEC_INLINE T Update(T p, T g, T&, T&) const { return p - lr * (g + decay * p); }
  const T lr, decay;
};

template <typename T>
struct Momentum {
  static constexpr int kStates = 1;
  Momentum(const Attributes& attributes, const StepScalars& step, const ParameterScalars& own)
      : lr(static_cast<T>(own.lr)),
        decay(static_cast<T>(own.weight_decay)),
        momentum(static_cast<T>(step.momentum)),
        nesterov(attributes.Int("nesterov") != 0) {}
  // v starts at 0, so the first step leaves it the gradient, as PyTorch's.
  PIPEC_INLINE T Update(T p, T g, T& v, T&) const {
    g = g + decay * p;
    v = momentum * v + g;
    return p - lr * (nesterov ? g + momentum * v : v);
  }
  const T lr, decay, momentum;
  const bool nesterov;
};

template <typename T>
struct Adam {
  static constexpr int kStates = 2;
  Adam(const Attributes& attributes, const StepScalars& step, const ParameterScalars& own)
      : decay(attributes.Int("decoupled") != 0 ? T{0} : static_cast<T>(own.weight_decay)),
        keep(attributes.Int("decoupled") != 0 ? static_cast<T>(1 - own.lr * own.weight_decay) : T{1}),
        from_gradient(static_cast<T>(1 - step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        from_square(static_cast<T>(1 - step.beta2)),
        eps(static_cast<T>(step.eps)) {
    const double steps = static_cast<double>(step.updates + 1);
    size = static_cast<T>(own.lr / (1 - std::pow(step.beta1, steps)));
    root = static_cast<T>(std::sqrt(1 - std::pow(step.beta2, steps)));
  }
  PIPEC_INLINE T Update(T p, T g, T& m, T& v) const {
    g = g + decay * p;
    m = m + from_gradient * (g - m);
    v = beta2 * v + from_square * g * g;
    return p * keep - size * (m / (std::sqrt(v) / root + eps));
  }
  const T decay, keep, from_gradient, beta2, from_square, eps;
  T size, root;  // lr and root of v, corrected for the start at 0
};

template <typename T>
struct Adagrad {
  static constexpr int kStates = 1;
  Adagrad(const Attributes&, const StepScalars& step, const ParameterScalars& own)
      : lr(static_cast<T>(own.lr)), decay(static_cast<T>(own.weight_decay)), eps(static_cast<T>(step.eps)) {}
  PIPEC_INLINE T Update(T p, T g, T& h, T&) const {
    g = g + decay * p;
    h = h + g * g;
    return p - lr * (g / (std::sqrt(h) + eps));
  }
  const T lr, decay, eps;
};

template <typename Rule, typename T>
void Run(const Rule& rule, T scale, T clip, const KernelArguments& arguments, int64_t n) {
  const T* p = Input<T>(arguments, 0);
  const T* g = Input<T>(arguments, 1);
  const T* a = Rule::kStates > 0 ? Input<T>(arguments, 2) : nullptr;
  const T* b = Rule::kStates > 1 ? Input<T>(arguments, 3) : nullptr;
  T* new_p = Output<T>(arguments, 0);
  T* new_a = Rule::kStates > 0 ? Output<T>(arguments, 1) : nullptr;
  T* new_b = Rule::kStates > 1 ? Output<T>(arguments, 2) : nullptr;
  ParallelFor(n, 8192, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      T gradient = scale * g[i];
      gradient = gradient < -clip ? -clip : gradient > clip ? clip : gradient;  // NaN stays
      T first = 0, second = 0;
      if constexpr (Rule::kStates > 0) first = a[i];
      if constexpr (Rule::kStates > 1) second = b[i];
      new_p[i] = rule.Update(p[i], gradient, first, second);
      if constexpr (Rule::kStates > 0) new_a[i] = first;
      if constexpr (Rule::kStates > 1) new_b[i] = second;
    }
  });
}

template <template <typename> class Rule>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  constexpr int kStates = Rule<float>::kStates;
  RETURN_IF_ERROR(CheckOperands(spec, {kStates + 3, kStates + 3, kStates + 1, kStates + 1}));
  const TensorType& type = spec.inputs[0].type;
  for (int k = 1; k < kStates + 2; ++k) RETURN_IF_ERROR(CheckInput(spec, k, type));
  RETURN_IF_ERROR(CheckInputElements(spec, kStates + 2, DType::kFloat64, 1));
  for (int k = 0; k < kStates + 1; ++k) RETURN_IF_ERROR(CheckOutput(spec, k, type));
  const int64_t parameter = spec.attributes.Int("parameter", -1);
  if (parameter < 0) return Invalid(spec, absl::StrCat("parameter is ", parameter, ", wanted at least 0"));
  return ForFloats(spec, type.dtype, [&, n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [n, parameter, attributes = spec.attributes](const KernelArguments& arguments) {
      const StepScalars& step = *arguments.scalars;
      const Rule<T> rule(attributes, step, step.parameters[parameter]);
      const T scale = static_cast<T>(*Input<double>(arguments, kStates + 2));
      const T clip =
          step.clip_value > 0 ? static_cast<T>(step.clip_value) : std::numeric_limits<T>::infinity();
      Run(rule, scale, clip, arguments, n);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  registry.Add("Sgd", kPipecDomain, Prepare<Sgd>);
  registry.Add("Momentum", kPipecDomain, Prepare<Momentum>);
  registry.Add("Adam", kPipecDomain, Prepare<Adam>);
  registry.Add("Adagrad", kPipecDomain, Prepare<Adagrad>);
}

}  // namespace pipec::cpu
