// One result element from one element of each of two operands, which are broadcast as NumPy does.
#pragma once

#include <memory>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/broadcast.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

class BinaryKernel : public Kernel {
 public:
  using Loop = void (*)(const Broadcast<2>& broadcast, const void* a, const void* b, void* result);
  // Looks at operand b before anything is computed; null: nothing to look for.
  using Check = absl::Status (*)(const void* b, int64_t elements);

  BinaryKernel(Loop loop, const Broadcast<2>& broadcast, Check check, int64_t b_elements)
      : loop_(loop), broadcast_(broadcast), check_(check), b_elements_(b_elements) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const void* b = arguments.inputs[1];
    if (check_ != nullptr) RETURN_IF_ERROR(check_(b, b_elements_));
    loop_(broadcast_, arguments.inputs[0], b, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  Loop loop_;
  Broadcast<2> broadcast_;
  Check check_;
  int64_t b_elements_;
};

// Op: a class with a static PIPEC_INLINE R Of(A, B). kA and kB: how far a step of the loop moves in each
// operand.
template <typename Op, typename A, typename B, typename R, int kA, int kB>
void BinaryRun(const A* a, const B* b, R* result, int64_t n) {
#pragma GCC ivdep  // the result may be an operand of its own size, which no step of the loop notices
  for (int64_t i = 0; i < n; ++i) result[i] = Op::Of(a[i * kA], b[i * kB]);
}

template <typename Op, typename A, typename B, typename R>
void BinaryLoop(const Broadcast<2>& broadcast, const void* a, const void* b, void* result) {
  const int last = broadcast.rank - 1;
  const int64_t step_a = broadcast.strides[0][last], step_b = broadcast.strides[1][last];
  using Run = void (*)(const A*, const B*, R*, int64_t);
  const Run run = step_a == step_b ? BinaryRun<Op, A, B, R, 1, 1>
                  : step_b == 0    ? BinaryRun<Op, A, B, R, 1, 0>
                                   : BinaryRun<Op, A, B, R, 0, 1>;
  ParallelFor(broadcast.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRun(begin, end, [&](int64_t place, const std::array<int64_t, 2>& offset, int64_t n) {
      run(static_cast<const A*>(a) + offset[0], static_cast<const B*>(b) + offset[1],
          static_cast<R*>(result) + place, n);
    });
  });
}

// The loop is chosen by the caller; null is reported as a missing kernel. The result has the broadcast shape
// and this element type.
inline absl::StatusOr<std::unique_ptr<Kernel>> MakeBinaryKernel(const KernelSpec& spec,
                                                                BinaryKernel::Loop loop, DType result,
                                                                BinaryKernel::Check check = nullptr) {
  const TensorType &a = spec.inputs[0].type, &b = spec.inputs[1].type;
  if (loop == nullptr) return NoKernelFor(spec, a.dtype);
  absl::StatusOr<Shape> shape = BroadcastShape({a.shape, b.shape});
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {result, *shape}));
  return std::make_unique<BinaryKernel>(loop, Broadcast<2>::Make({a.shape, b.shape}, *shape), check,
                                        b.elements());
}

}  // namespace pipec::cpu
