// ai.pipec::NonZero: where the elements that are not 0 lie, and how many they are.
#include <algorithm>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// y is (rank, elements), a column for each that is found, zeros behind. Returns how many.
using NonZeroLoop = int64_t (*)(const Shape& shape, const void* x, int64_t* y);

template <typename T>
int64_t Loop(const Shape& shape, const void* x, int64_t* y) {
  const int64_t rank = shape.size(), elements = NumElements(shape);
  std::fill(y, y + rank * elements, 0);
  int64_t found = 0;
  for (int64_t i = 0; i < elements; ++i) {
    if (static_cast<const T*>(x)[i] == T{0}) continue;
    for (int64_t axis = rank - 1, rest = i; axis >= 0; --axis) {
      y[axis * elements + found] = rest % shape[axis];
      rest /= shape[axis];
    }
    ++found;
  }
  return found;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1, .min_outputs = 2, .max_outputs = 2}));
  const TensorType& x = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutput(
      spec, 0, {DType::kInt64, {static_cast<int64_t>(x.shape.size()), NumElements(x.shape)}}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, {}}));
  const auto loop = ForType<NonZeroLoop>(NumbersAndBool(), x.dtype, [](auto t) -> NonZeroLoop {
    return Loop<typename decltype(t)::type>;
  });
  if (loop == nullptr) return NoKernelFor(spec, x.dtype);
  return MakeKernel(0, [loop, shape = x.shape](const KernelArguments& arguments) {
    *Output<int64_t>(arguments, 1) = loop(shape, arguments.inputs[0], Output<int64_t>(arguments, 0));
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterNonZeroKernels(KernelRegistry& registry) { registry.Add("NonZero", kPipecDomain, Prepare); }

}  // namespace pipec::cpu
