// MatMulWeightGrad (dY, X) -> (dW, dBias): cuBLASLt's product with its bias gradient; where it has none, or where
// both are added to what lies there, which its bias gradient cannot be, the product and sums of dY's rows, in an order
// that the shape fixes.
#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/blas_product.h"
#include "runtime/device/cuda/kernels/column_sums.cuh"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/epilogue_kernel.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/matmul.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/operands/matrix_product.h"
#include "runtime/device/operands/sums.h"

namespace pipec::cuda {
namespace {

template <typename From>
struct RowTerms {
  const From* dy;
  int64_t columns;
  template <int kLanes>
  __device__ void Add(int64_t row, int64_t column, Compute<From> (&sums)[1][kLanes]) const {
    const Lanes<kLanes, From> own = LoadLanes<kLanes>(dy + row * columns + column);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) sums[0][i] += Widen(own.values[i]);
  }
};

template <typename To>
struct PutSum {
  To* sums;
  bool add;
  __device__ void operator()(int64_t column, const double (&totals)[1]) const {
    const Compute<To> own = static_cast<Compute<To>>(totals[0]);
    sums[column] = Narrow<To>(add ? Widen(sums[column]) + own : own);
  }
};

// What a launch of the product gets: dY and X, in its order.
struct Order {
  int a, b;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeSums(const KernelSpec& spec, const WeightGradient& gradient) {
  const auto with = [&](auto from_tag, auto to_tag) -> std::unique_ptr<Kernel> {
    using From = typename decltype(from_tag)::type;
    using To = typename decltype(to_tag)::type;
    return MakeKernel(ColumnSumsBytes<1>(gradient.rows, gradient.columns),
                      [rows = gradient.rows, columns = gradient.columns, add = gradient.product.add](
                          cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                        if (columns == 0) return absl::OkStatus();
                        const From* const dy = Input<From>(arguments, 0);
                        return LaunchColumnSums<From, 1>(stream, RowTerms<From>{dy, columns},
                                                         PutSum<To>{Output<To>(arguments, 1), add}, rows, columns,
                                                         Aligned(dy), arguments.workspace);
                      });
  };
  return ForAllFloats(spec, gradient.product.dtype, [&](auto tag) {
    return gradient.product.result == gradient.product.dtype ? with(tag, tag) : with(tag, TypeTag<float>());
  });
}

class WeightGradKernel : public Kernel {
 public:
  WeightGradKernel(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> sums, const Order& order)
      : product_(std::move(product)), sums_(std::move(sums)), order_(order) {}
  int64_t workspace_bytes() const override {
    return std::max(product_->workspace_bytes(), sums_->workspace_bytes());
  }
  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(sums_->Launch(stream, arguments));
    const void* const operands[] = {arguments.inputs[order_.a], arguments.inputs[order_.b]};
    return product_->Launch(stream, {operands, arguments.outputs, arguments.scalars, arguments.workspace});
  }

 private:
  const std::unique_ptr<Kernel> product_, sums_;
  const Order order_;
};

// Both at once; Unimplemented if cuBLASLt does not do that.
absl::StatusOr<std::shared_ptr<BlasProduct>> WithSums(const KernelSpec& spec, const WeightGradient& gradient,
                                                      CudaContext& context) {
  const MatrixProduct& product = gradient.product;
  if (product.m * product.k * product.n == 0) return absl::UnimplementedError("an empty product");
  if (product.add) return absl::UnimplementedError("a bias gradient that is added");
  return BlasProduct::Create(spec, product, gradient.dy_first ? Epilogue::kSumOfA : Epilogue::kSumOfB,
                             context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWeightGrad(const KernelSpec& spec, const WeightGradient& gradient,
                                                       CudaContext& context) {
  const Order order = gradient.dy_first ? Order{0, 1} : Order{1, 0};
  const auto in_parts = [&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeProduct(spec, gradient.product, context));
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> sums, MakeSums(spec, gradient));
    return std::make_unique<WeightGradKernel>(std::move(product), std::move(sums), order);
  };
  absl::StatusOr<std::shared_ptr<BlasProduct>> blas = WithSums(spec, gradient, context);
  if (absl::IsUnimplemented(blas.status())) return in_parts();
  RETURN_IF_ERROR(blas.status());
  return MakeEpilogueKernel(*std::move(blas), {.a = order.a, .b = order.b, .output = 1}, in_parts);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(WeightGradient gradient, ReadMatMulWeightGrad(spec));
  return MakeAccumulating(spec, [&](bool add) {
    gradient.product.add = add;
    return MakeWeightGrad(spec, gradient, context);
  });
}

}  // namespace

void RegisterMatMulWeightGradKernels(KernelRegistry& registry) {
  registry.Add("MatMulWeightGrad", kPipecDomain, PrepareWeightGrad, /*adds=*/true);
}

}  // namespace pipec::cuda
