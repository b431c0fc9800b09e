// CumSum and CumProd along an axis.
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// x and the result are (outer, n, inner).
struct Sizes {
  int64_t outer, n, inner;
};

using CumulativeLoop = void (*)(const Sizes& sizes, bool exclusive, bool reverse, const void* x,
                                void* result);

template <typename T, bool kProduct>
void Loop(const Sizes& sizes, bool exclusive, bool reverse, const void* x, void* result) {
  ParallelFor(sizes.outer * sizes.inner, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(sizes.n, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t first = i / sizes.inner * sizes.n * sizes.inner + i % sizes.inner;
                  Wrapping<T> total = kProduct ? 1 : 0;
                  for (int64_t k = 0; k < sizes.n; ++k) {
                    const int64_t place = first + (reverse ? sizes.n - 1 - k : k) * sizes.inner;
                    const auto value = static_cast<Wrapping<T>>(static_cast<const T*>(x)[place]);
                    const Wrapping<T> with = kProduct ? total * value : total + value;
                    static_cast<T*>(result)[place] = static_cast<T>(exclusive ? total : with);
                    total = with;
                  }
                }
              });
}

class CumulativeKernel : public Kernel {
 public:
  CumulativeKernel(const KernelSpec& spec, CumulativeLoop loop)
      : loop_(loop),
        shape_(spec.inputs[0].type.shape),
        axis_(spec.inputs[1].type),
        exclusive_(spec.attributes.Int("exclusive", 0) != 0),
        reverse_(spec.attributes.Int("reverse", 0) != 0) {}

  absl::StatusOr<Sizes> FindSizes(const void* axis_operand) const {
    ASSIGN_OR_RETURN(const int axis,
                     NormaliseAxis(ReadInts(axis_, axis_operand)[0], static_cast<int>(shape_.size())));
    const auto shape = absl::MakeSpan(shape_);
    return Sizes{NumElements(shape.first(axis)), shape[axis], NumElements(shape.subspan(axis + 1))};
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    ASSIGN_OR_RETURN(const Sizes sizes, FindSizes(arguments.inputs[1]));
    loop_(sizes, exclusive_, reverse_, arguments.inputs[0], arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  const CumulativeLoop loop_;
  const Shape shape_;
  const TensorType axis_;
  const bool exclusive_, reverse_;
};

template <bool kProduct>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& x = spec.inputs[0].type;
  const auto loop = ForType<CumulativeLoop>(Numbers(), x.dtype, [](auto t) -> CumulativeLoop {
    return Loop<typename decltype(t)::type, kProduct>;
  });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  if (!IsSmallInts(spec.inputs[1].type) || spec.inputs[1].type.elements() != 1) {
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(spec.inputs[1].type), ", wanted one axis"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  auto kernel = std::make_unique<CumulativeKernel>(spec, loop);
  if (spec.inputs[1].constant != nullptr) {
    const absl::StatusOr<Sizes> sizes = kernel->FindSizes(spec.inputs[1].constant);
    if (!sizes.ok()) return Invalid(spec, sizes.status().message());
  }
  return kernel;
}

}  // namespace

void RegisterCumulativeKernels(KernelRegistry& registry) {
  registry.Add("CumProd", "", Prepare<true>);
  registry.Add("CumSum", "", Prepare<false>);
}

}  // namespace pipec::cpu
