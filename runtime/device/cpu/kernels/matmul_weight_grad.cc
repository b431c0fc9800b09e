// MatMulWeightGrad (dY, X) -> (dW, dBias): the product of a weight's gradient, and the sum of dY's rows.
#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/fold_columns.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/reduce_ops.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/small_floats.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/sums.h"

namespace pipec::cpu {
namespace {

// Sums of `From`, which are `To`.
template <typename From, typename To>
struct RowSum : SumReduction<To> {
  static PIPEC_INLINE To Load(From x) {
    if constexpr (sizeof(From) == 2)
      return ToFloat(x);
    else
      return x;
  }
};

template <typename From, typename To>
class WeightGradKernel : public Kernel {
 public:
  // The product adds itself as `gradient` says.
  WeightGradKernel(std::unique_ptr<Kernel> product, const WeightGradient& gradient)
      : product_(std::move(product)), gradient_(gradient) {}

  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const int64_t rows = gradient_.rows, columns = gradient_.columns;
    const From* const dy = Input<From>(arguments, 0);
    To* const bias = Output<To>(arguments, 1);
    const bool add = gradient_.product.add;
    ParallelFor((columns + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
      for (int64_t column = begin * kColumns; column < std::min(columns, end * kColumns);
           column += kColumns) {
        const int64_t width = std::min(kColumns, columns - column);
        double totals[kColumns] = {};
        FoldColumns<RowSum<From, To>, From>(dy + column, rows, columns, width, totals);
        for (int64_t c = 0; c < width; ++c)
          bias[column + c] = (add ? bias[column + c] : To{0}) + static_cast<To>(totals[c]);
      }
    });
    const void* const operands[] = {arguments.inputs[gradient_.dy_first ? 0 : 1],
                                    arguments.inputs[gradient_.dy_first ? 1 : 0]};
    return product_->Launch(stream, {operands, arguments.outputs, arguments.scalars, arguments.workspace});
  }

 private:
  const std::unique_ptr<Kernel> product_;
  const WeightGradient gradient_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(WeightGradient gradient, ReadMatMulWeightGrad(spec));
  const DType from = gradient.product.dtype, to = gradient.product.result;
  return MakeAccumulating(spec, [&](bool add) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    gradient.product.add = add;
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeProduct(spec, gradient.product));
    const auto made = [&](auto x, auto sum) -> std::unique_ptr<Kernel> {
      return std::make_unique<WeightGradKernel<decltype(x), decltype(sum)>>(std::move(product), gradient);
    };
    if (from == DType::kFloat32) return made(float{}, float{});
    if (from == DType::kFloat64) return made(double{}, double{});
    if (from == DType::kBFloat16 && to == DType::kFloat32) return made(BFloat16{}, float{});
    if (from == DType::kFloat16 && to == DType::kFloat32) return made(Float16{}, float{});
    return NoKernelFor(spec, from);
  });
}

}  // namespace

void RegisterMatMulWeightGradKernels(KernelRegistry& registry) {
  registry.Add("MatMulWeightGrad", kPipecDomain, PrepareWeightGrad, /*adds=*/true);
}

}  // namespace pipec::cpu
