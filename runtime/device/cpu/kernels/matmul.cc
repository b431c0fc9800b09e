// MatMul (A, B) -> (Y), FusedMatMul (A, B, bias?, X?) -> (Y) with transposition, factor, activation and, of 16-bit
// floats, a float32 result, Gemm (A, B, C?) -> (Y).
#include <algorithm>

#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/device/activated_product.h"
#include "runtime/device/cpu/kernel_registry.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/sums.h"

namespace pipec::cpu {
namespace {

// Writes beta * C to Y, then lets the product add itself.
template <typename T>
class AddingKernel : public Kernel {
 public:
  AddingKernel(std::unique_ptr<Kernel> product, const Addend& c)
      : product_(std::move(product)), c_(c), beta_(static_cast<T>(c.beta)) {}

  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const T* const c = Input<T>(arguments, 2);
    T* const y = Output<T>(arguments, 0);
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, c_.columns));
    ParallelFor(c_.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* const c_row = c + row * c_.row_step;
        T* const y_row = y + row * c_.columns;
        if (c_.column_step == 0) {
          std::fill(y_row, y_row + c_.columns, beta_ * *c_row);
        } else {
#pragma GCC ivdep
          for (int64_t i = 0; i < c_.columns; ++i) y_row[i] = beta_ * c_row[i];
        }
      }
    });
    return product_->Launch(stream, arguments);
  }

 private:
  const std::unique_ptr<Kernel> product_;
  const Addend c_;
  const T beta_;
};

template <typename T>
std::unique_ptr<Kernel> MakeAdding(std::unique_ptr<Kernel> product, const Addend& c) {
  return std::make_unique<AddingKernel<T>>(std::move(product), c);
}

// oneDNN adds a bias itself, before it multiplies by alpha, and applies Gelu.
absl::StatusOr<std::unique_ptr<Kernel>> MakeAddedProduct(const KernelSpec& spec, AddedProduct added) {
  MatrixProduct& product = added.product;
  if (spec.accumulates && (added.addend || product.activation != ProductActivation::kNone))
    return Invalid(spec, "a product with a bias or an activation does not accumulate");
  const bool onednn = (product.dtype == DType::kFloat32 || IsSmallFloat(product.dtype)) && product.k > 0;
  const bool own_bias = onednn && added.addend && added.addend->is_bias() && product.alpha == 1;
  const bool own_gelu =
      product.activation == ProductActivation::kGelu && onednn && (own_bias || !added.addend);
  if (product.activation != ProductActivation::kNone && !own_gelu) {
    return MakeActivatedProduct(
        spec, [](const KernelSpec& part) { return Kernels().Find(part.op, part.domain)(part); });
  }
  if (!added.addend) {
    return MakeAccumulating(spec, [&](bool add) {
      product.add = add;
      return MakeProduct(spec, product);
    });
  }
  if (own_bias) {
    product.bias = true;
    return MakeProduct(spec, product);
  }
  product.add = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeProduct(spec, product));
  switch (product.result) {
    case DType::kFloat32:
      return MakeAdding<float>(std::move(kernel), *added.addend);
    case DType::kFloat64:
      return MakeAdding<double>(std::move(kernel), *added.addend);
    case DType::kInt32:
      return MakeAdding<int32_t>(std::move(kernel), *added.addend);
    case DType::kInt64:
      return MakeAdding<int64_t>(std::move(kernel), *added.addend);
    case DType::kUint32:
      return MakeAdding<uint32_t>(std::move(kernel), *added.addend);
    case DType::kBFloat16:
    case DType::kFloat16:
      if (added.addend->beta != 1) return NoKernelFor(spec, product.result);
      return MakeAdding<uint16_t>(std::move(kernel), *added.addend);  // C is copied, as bits
    default:
      return MakeAdding<uint64_t>(std::move(kernel), *added.addend);
  }
}

template <absl::StatusOr<AddedProduct> (*kRead)(const KernelSpec& spec)>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(AddedProduct added, kRead(spec));
  return MakeAddedProduct(spec, std::move(added));
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", "", Prepare<ReadMatMul>);
  registry.Add("Gemm", "", Prepare<ReadGemm>);
  registry.Add("FusedMatMul", kPipecDomain, Prepare<ReadFusedMatMul>, /*adds=*/true);
}

}  // namespace pipec::cpu
