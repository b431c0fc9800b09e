// Where: an element of one of two operands, as a third says; all three are broadcast. It only moves elements,
// so it is typed by their size.
#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/broadcast.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// kSteps: bit k is 1 if a step of the loop moves in operand k, 0 if that operand stays.
template <typename T, int kSteps>
void WhereRun(const bool* condition, const T* x, const T* y, T* result, int64_t n) {
#pragma GCC ivdep  // the result may be an operand of its own size, which no step of the loop notices
  for (int64_t i = 0; i < n; ++i) {
    const T if_true = x[kSteps & 2 ? i : 0], if_false = y[kSteps & 4 ? i : 0];
    result[i] = condition[kSteps & 1 ? i : 0] ? if_true : if_false;
  }
}

template <typename T>
void WhereLoop(const Broadcast<3>& broadcast, const void* const* inputs, void* result) {
  using Run = void (*)(const bool*, const T*, const T*, T*, int64_t);
  // Nothing moves in a single element.
  static constexpr Run kRuns[8] = {WhereRun<T, 7>, WhereRun<T, 1>, WhereRun<T, 2>, WhereRun<T, 3>,
                                   WhereRun<T, 4>, WhereRun<T, 5>, WhereRun<T, 6>, WhereRun<T, 7>};
  int steps = 0;
  for (int k = 0; k < 3; ++k) steps |= static_cast<int>(broadcast.strides[k][broadcast.rank - 1]) << k;
  const Run run = kRuns[steps];
  const auto* condition = static_cast<const bool*>(inputs[0]);
  const auto *x = static_cast<const T*>(inputs[1]), *y = static_cast<const T*>(inputs[2]);
  ParallelFor(broadcast.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRun(begin, end, [&](int64_t place, const std::array<int64_t, 3>& offset, int64_t n) {
      run(condition + offset[0], x + offset[1], y + offset[2], static_cast<T*>(result) + place, n);
    });
  });
}

class WhereKernel : public Kernel {
 public:
  using Loop = void (*)(const Broadcast<3>& broadcast, const void* const* inputs, void* result);

  WhereKernel(Loop loop, const Broadcast<3>& broadcast) : loop_(loop), broadcast_(broadcast) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    loop_(broadcast_, arguments.inputs, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  Loop loop_;
  Broadcast<3> broadcast_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  RETURN_IF_ERROR(CheckInputType(spec, 0, DType::kBool));
  const DType dtype = spec.inputs[1].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 2, dtype));
  const auto loop = ForSize<WhereKernel::Loop>(
      SizeOf(dtype), [](auto t) -> WhereKernel::Loop { return WhereLoop<typename decltype(t)::type>; });
  if (loop == nullptr) return NoKernelFor(spec, dtype);
  const std::array<Shape, 3> shapes = {spec.inputs[0].type.shape, spec.inputs[1].type.shape,
                                       spec.inputs[2].type.shape};
  absl::StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, *shape}));
  return std::make_unique<WhereKernel>(loop, Broadcast<3>::Make(shapes, *shape));
}

}  // namespace

void RegisterWhereKernels(KernelRegistry& registry) { registry.Add("Where", "", Prepare); }

}  // namespace pipec::cpu
