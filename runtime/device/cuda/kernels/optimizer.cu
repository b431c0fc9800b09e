// The optimizer ops, in place: (p, g, states..., scale) -> (p', states'...). Formulas are those of torch.optim
// (SGD, Adam, AdamW, Adagrad); coefficients are made in float64 and rounded once to the parameter's type, as
// PyTorch does.
//   Sgd: no state. Momentum: v. Adam: m, v. Adagrad: h.
// Where the gate is closed (update_gate.h) results are what they would replace.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

struct Options {
  int64_t parameter;
  bool nesterov, decoupled;
};

// A rule holds coefficients, which one thread of a block makes for all, and updates one element: the parameter,
// given its gradient and up to two states.
template <typename T>
struct Sgd {
  static constexpr int kStates = 0;
  T lr, decay;
  __device__ void Make(const Options&, const StepScalars&, const ParameterScalars& own) {
    lr = static_cast<T>(own.lr);
    decay = static_cast<T>(own.weight_decay);
  }
  __device__ __forceinline__ T Update(T p, T g, T&, T&) const { return p - lr * (g + decay * p); }
};

template <typename T>
struct Momentum {
  static constexpr int kStates = 1;
  T lr, decay, momentum;
  T nesterov;  // not 0: on
  __device__ void Make(const Options& options, const StepScalars& step, const ParameterScalars& own) {
    lr = static_cast<T>(own.lr);
    decay = static_cast<T>(own.weight_decay);
    momentum = static_cast<T>(step.momentum);
    nesterov = options.nesterov ? T(1) : T(0);
  }
  // v starts at 0, so the first step leaves it the gradient, as PyTorch's.
  __device__ __forceinline__ T Update(T p, T g, T& v, T&) const {
    g = g + decay * p;
    v = momentum * v + g;
    return p - lr * (nesterov != T(0) ? g + momentum * v : v);
  }
};

template <typename T>
struct Adam {
  static constexpr int kStates = 2;
  T decay, keep, from_gradient, beta2, from_square, eps;
  T size, root;  // lr and root of v, corrected for the start at 0
  __device__ void Make(const Options& options, const StepScalars& step, const ParameterScalars& own) {
    decay = options.decoupled ? T(0) : static_cast<T>(own.weight_decay);
    keep = options.decoupled ? static_cast<T>(1 - own.lr * own.weight_decay) : T(1);
    from_gradient = static_cast<T>(1 - step.beta1);
    beta2 = static_cast<T>(step.beta2);
    from_square = static_cast<T>(1 - step.beta2);
    eps = static_cast<T>(step.eps);
    const double steps = static_cast<double>(step.updates + 1);
    size = static_cast<T>(own.lr / (1 - pow(step.beta1, steps)));
    root = static_cast<T>(sqrt(1 - pow(step.beta2, steps)));
  }
  __device__ __forceinline__ T Update(T p, T g, T& m, T& v) const {
    g = g + decay * p;
    m = m + from_gradient * (g - m);
    v = beta2 * v + from_square * g * g;
    return p * keep - size * (m / (sqrt(v) / root + eps));
  }
};

template <typename T>
struct Adagrad {
  static constexpr int kStates = 1;
  T lr, decay, eps;
  __device__ void Make(const Options&, const StepScalars& step, const ParameterScalars& own) {
    lr = static_cast<T>(own.lr);
    decay = static_cast<T>(own.weight_decay);
    eps = static_cast<T>(step.eps);
  }
  __device__ __forceinline__ T Update(T p, T g, T& h, T&) const {
    g = g + decay * p;
    h = h + g * g;
    return p - lr * (g / (sqrt(h) + eps));
  }
};

template <typename T>
struct Operands {
  const T *p, *g, *a, *b;  // a, b: the states, null where the rule has none
  T *new_p, *new_a, *new_b;
};

template <typename T>
__device__ void Keep(const T* from, T* to, int64_t n) {
  if (from == to) return;
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) to[i] = from[i];
}

template <typename Rule, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    Update(const Operands<T> at, const double* scale, const Options options, const StepScalars* step,
           const UpdateGate* gate, int64_t n, int64_t vectors) {
  if (*gate != 0) {
    Keep(at.p, at.new_p, n);
    if constexpr (Rule::kStates > 0) Keep(at.a, at.new_a, n);
    if constexpr (Rule::kStates > 1) Keep(at.b, at.new_b, n);
    return;
  }
  __shared__ Rule shared[1];
  if (threadIdx.x == 0) shared[0].Make(options, *step, step->parameters[options.parameter]);
  __syncthreads();
  const Rule rule = shared[0];
  const T factor = static_cast<T>(*scale);
  const T clip = step->clip_value > 0 ? static_cast<T>(step->clip_value) : static_cast<T>(INFINITY);
  const auto update = [&](T p, T g, T& a, T& b) {
    T gradient = factor * g;
    gradient = gradient < -clip ? -clip : gradient > clip ? clip : gradient;  // NaN stays
    return rule.Update(p, gradient, a, b);
  };
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t v = FirstItem(); v < vectors; v += ItemStride()) {
    Vector<T> p = LoadVector(at.p + v * kSize), g = LoadVector(at.g + v * kSize), a{}, b{};
    if constexpr (Rule::kStates > 0) a = LoadVector(at.a + v * kSize);
    if constexpr (Rule::kStates > 1) b = LoadVector(at.b + v * kSize);
#pragma unroll
    for (int i = 0; i < kSize; ++i) p.values[i] = update(p.values[i], g.values[i], a.values[i], b.values[i]);
    StoreVector(at.new_p + v * kSize, p);
    if constexpr (Rule::kStates > 0) StoreVector(at.new_a + v * kSize, a);
    if constexpr (Rule::kStates > 1) StoreVector(at.new_b + v * kSize, b);
  }
  for (int64_t i = vectors * kSize + FirstItem(); i < n; i += ItemStride()) {
    T a = 0, b = 0;
    if constexpr (Rule::kStates > 0) a = at.a[i];
    if constexpr (Rule::kStates > 1) b = at.b[i];
    at.new_p[i] = update(at.p[i], at.g[i], a, b);
    if constexpr (Rule::kStates > 0) at.new_a[i] = a;
    if constexpr (Rule::kStates > 1) at.new_b[i] = b;
  }
}

template <template <typename> class Rule>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext& context) {
  constexpr int kStates = Rule<float>::kStates;
  RETURN_IF_ERROR(CheckOperands(spec, {kStates + 3, kStates + 3, kStates + 1, kStates + 1}));
  const TensorType& type = spec.inputs[0].type;
  for (int k = 1; k < kStates + 2; ++k) RETURN_IF_ERROR(CheckInput(spec, k, type));
  RETURN_IF_ERROR(CheckInputElements(spec, kStates + 2, DType::kFloat64, 1));
  for (int k = 0; k < kStates + 1; ++k) RETURN_IF_ERROR(CheckOutput(spec, k, type));
  const Options options{spec.attributes.Int("parameter", -1), spec.attributes.Int("nesterov") != 0,
                        spec.attributes.Int("decoupled") != 0};
  if (options.parameter < 0) {
    return Invalid(spec, absl::StrCat("parameter is ", options.parameter, ", wanted at least 0"));
  }
  ASSIGN_OR_RETURN(const UpdateGate* const gate, context.gate());
  // Each block makes the rule once: no more blocks than the GPU runs at a time.
  const int64_t most_blocks = 8 * context.multiprocessors();
  return ForWideFloats(spec, type.dtype, [=, n = type.elements()](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (n == 0) return absl::OkStatus();
      const Operands<T> at{Input<T>(arguments, 0),
                           Input<T>(arguments, 1),
                           kStates > 0 ? Input<T>(arguments, 2) : nullptr,
                           kStates > 1 ? Input<T>(arguments, 3) : nullptr,
                           Output<T>(arguments, 0),
                           kStates > 0 ? Output<T>(arguments, 1) : nullptr,
                           kStates > 1 ? Output<T>(arguments, 2) : nullptr};
      const bool whole = Aligned(at.p) && Aligned(at.g) && Aligned(at.a) && Aligned(at.b) && Aligned(at.new_p) &&
                         Aligned(at.new_a) && Aligned(at.new_b);
      const int64_t vectors = whole ? n / Vector<T>::kSize : 0;
      const int64_t items = std::min((vectors > 0 ? vectors : n), most_blocks * kThreads);
      return Launch(Update<Rule<T>, T>, BlocksFor(items), kThreads, stream, at,
                    Input<double>(arguments, kStates + 2), options, arguments.scalars, gate, n, vectors);
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

}  // namespace pipec::cuda
