// Max, Min, Sum and Mean of any number of operands, broadcast together. The first operand meets the second,
// the result the third, and so on.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "runtime/device/cpu/kernels/binary_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

// NaN wins, as in NumPy.
struct MaxOp {
  using Types = Numbers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

struct MinOp {
  using Types = Numbers;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

struct SumOp {
  using Types = Floats;
  template <typename T>
  static PIPEC_INLINE T Of(T a, T b) {
    return a + b;
  }
};

// The sum, divided by the number of operands.
struct MeanOp : SumOp {};

constexpr int64_t kBlock = 512;

// The result may lie where one of the operands lies: a block is complete in a buffer before it is written.
template <typename Op, typename T>
void Loop(absl::Span<const Broadcast<1>> operands, const void* const* inputs, void* result) {
  ParallelFor(operands[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    T block[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t stop = std::min(at + kBlock, end);
      for (size_t k = 0; k < operands.size(); ++k) {
        const Broadcast<1>& operand = operands[k];
        const int64_t step = operand.strides[0][operand.rank - 1];
        operand.ForEachRun(at, stop, [&](int64_t place, const std::array<int64_t, 1>& offset, int64_t n) {
          const T* x = static_cast<const T*>(inputs[k]) + offset[0];
          T* to = block + (place - at);
          for (int64_t i = 0; i < n; ++i) to[i] = k == 0 ? x[i * step] : Op::Of(to[i], x[i * step]);
        });
      }
      if constexpr (std::is_same_v<Op, MeanOp>) {
        for (int64_t i = 0; i < stop - at; ++i) block[i] /= static_cast<T>(operands.size());
      }
      std::copy(block, block + (stop - at), static_cast<T*>(result) + at);
    }
  });
}

class VariadicKernel : public Kernel {
 public:
  using Loop = void (*)(absl::Span<const Broadcast<1>> operands, const void* const* inputs, void* result);

  VariadicKernel(Loop loop, std::vector<Broadcast<1>> operands)
      : loop_(loop), operands_(std::move(operands)) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    loop_(operands_, arguments.inputs, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  Loop loop_;
  std::vector<Broadcast<1>> operands_;
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  const int n = static_cast<int>(spec.inputs.size());
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = std::max(n, 1), .max_inputs = std::max(n, 1)}));
  const DType dtype = spec.inputs[0].type.dtype;
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    RETURN_IF_ERROR(CheckInputType(spec, k, dtype));
    shapes.push_back(spec.inputs[k].type.shape);
  }
  if (n == 2 && !std::is_same_v<Op, MeanOp>) {
    const auto loop =
        ForType<BinaryKernel::Loop>(typename Op::Types(), dtype, [](auto t) -> BinaryKernel::Loop {
          using T = typename decltype(t)::type;
          return BinaryLoop<Op, T, T, T>;
        });
    return MakeBinaryKernel(spec, loop, dtype);
  }
  const auto loop = ForType<VariadicKernel::Loop>(
      typename Op::Types(), dtype,
      [](auto t) -> VariadicKernel::Loop { return Loop<Op, typename decltype(t)::type>; });
  if (loop == nullptr) return NoKernelFor(spec, dtype);
  absl::StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok()) return Invalid(spec, shape.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, *shape}));
  std::vector<Broadcast<1>> operands;
  for (const Shape& own : shapes) operands.push_back(Broadcast<1>::Make({own}, *shape));
  return std::make_unique<VariadicKernel>(loop, std::move(operands));
}

}  // namespace

void RegisterVariadicKernels(KernelRegistry& registry) {
  registry.Add("Max", "", Prepare<MaxOp>);
  registry.Add("Mean", "", Prepare<MeanOp>);
  registry.Add("Min", "", Prepare<MinOp>);
  registry.Add("Sum", "", Prepare<SumOp>);
}

}  // namespace pipec::cpu
