// ArgMax and ArgMin. The first NaN of a row counts as the extreme, as in NumPy; among equals the first, or
// the last if select_last_index.
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// x is (outer, n, inner), the result (outer, inner).
struct Sizes {
  int64_t outer, n, inner;
};

using ArgLoop = void (*)(const Sizes& sizes, const void* x, int64_t* result);

template <typename T, bool kMax, bool kLast>
void Loop(const Sizes& sizes, const void* x, int64_t* result) {
  ParallelFor(sizes.outer * sizes.inner, std::max<int64_t>(1, kElementGrain / sizes.n),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* row =
                      static_cast<const T*>(x) + i / sizes.inner * sizes.n * sizes.inner + i % sizes.inner;
                  int64_t best = 0;
                  for (int64_t k = 1; k < sizes.n; ++k) {
                    const T a = row[k * sizes.inner], b = row[best * sizes.inner];
                    if ((kMax ? a > b : a < b) || (kLast && a == b) || (a != a && b == b)) best = k;
                  }
                  result[i] = best;
                }
              });
}

class ArgKernel : public Kernel {
 public:
  ArgKernel(ArgLoop loop, const Sizes& sizes) : loop_(loop), sizes_(sizes) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    loop_(sizes_, arguments.inputs[0], static_cast<int64_t*>(arguments.outputs[0]));
    return absl::OkStatus();
  }

 private:
  const ArgLoop loop_;
  const Sizes sizes_;
};

template <bool kMax>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 0), static_cast<int>(x.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  const bool last = spec.attributes.Int("select_last_index", 0) != 0;
  const auto loop = ForType<ArgLoop>(Numbers(), x.dtype, [last](auto t) -> ArgLoop {
    using T = typename decltype(t)::type;
    return last ? Loop<T, kMax, true> : Loop<T, kMax, false>;
  });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  Shape shape = x.shape;
  const Sizes sizes{NumElements(absl::MakeSpan(x.shape).subspan(0, *axis)), x.shape[*axis],
                    NumElements(absl::MakeSpan(x.shape).subspan(*axis + 1))};
  if (spec.attributes.Int("keepdims", 1) != 0) {
    shape[*axis] = 1;
  } else {
    shape.erase(shape.begin() + *axis);
  }
  if (sizes.n == 0)
    return Invalid(spec, absl::StrCat("axis ", *axis, " of ", ToString(x.shape), " has no element"));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt64, shape}));
  return std::make_unique<ArgKernel>(loop, sizes);
}

}  // namespace

void RegisterArgMaxKernels(KernelRegistry& registry) {
  registry.Add("ArgMax", "", Prepare<true>);
  registry.Add("ArgMin", "", Prepare<false>);
}

}  // namespace pipec::cpu
