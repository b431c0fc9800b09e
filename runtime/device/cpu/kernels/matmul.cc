// MatMul (A, B) -> (Y), FusedMatMul (A, B) -> (Y) with transposition, factor and, of 16-bit floats, a float32
// result, Gemm (A, B, C?) -> (Y).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMatMul(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  ASSIGN_OR_RETURN(const MatrixProduct product, ProductOf(spec, false, false));
  const Shape shape = ResultShape(spec.inputs[0].type, spec.inputs[1].type, product);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {product.dtype, shape}));
  return MakeProduct(spec, product);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareFusedMatMul(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("trans_a") != 0, spec.attributes.Int("trans_b") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  product.result = static_cast<DType>(spec.attributes.Int("to", static_cast<int64_t>(product.dtype)));
  if (product.result != product.dtype &&
      (product.result != DType::kFloat32 || !IsSmallFloat(product.dtype))) {
    return NoKernelFor(spec, product.result);
  }
  const Shape shape = ResultShape(spec.inputs[0].type, spec.inputs[1].type, product);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {product.result, shape}));
  return MakeProduct(spec, product);
}

// How Gemm's C lies under Y.
struct Addend {
  int64_t rows, columns;          // of Y
  int64_t row_step, column_step;  // of C: 0 where it repeats
};

absl::StatusOr<Addend> AddendOf(const KernelSpec& spec, const TensorType& y) {
  const TensorType& c = spec.inputs[2].type;
  Shape shape = c.shape;
  if (shape.size() < 2) shape.insert(shape.begin(), 2 - shape.size(), 1);
  if (c.dtype != y.dtype || shape.size() != 2 || (shape[0] != 1 && shape[0] != y.shape[0]) ||
      (shape[1] != 1 && shape[1] != y.shape[1])) {
    return Invalid(spec, absl::StrCat("C is ", ToString(c), ", which does not broadcast to ", ToString(y)));
  }
  return Addend{y.shape[0], y.shape[1], shape[0] == 1 ? 0 : shape[1], shape[1] == 1 ? 0 : 1};
}

// Writes beta * C to Y, then lets the product add itself.
template <typename T>
class GemmKernel : public Kernel {
 public:
  GemmKernel(std::unique_ptr<Kernel> product, const Addend& c, float beta)
      : product_(std::move(product)), c_(c), beta_(static_cast<T>(beta)) {}

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
std::unique_ptr<Kernel> MakeGemm(std::unique_ptr<Kernel> product, const Addend& c, float beta) {
  return std::make_unique<GemmKernel<T>>(std::move(product), c, beta);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGemm(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  if (spec.inputs[0].type.shape.size() != 2 || spec.inputs[1].type.shape.size() != 2) {
    return Invalid(spec, absl::StrCat("operands are ", ToString(spec.inputs[0].type), " and ",
                                      ToString(spec.inputs[1].type), ", wanted matrices"));
  }
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("transA") != 0, spec.attributes.Int("transB") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  const TensorType y{product.dtype, {product.m, product.n}};
  RETURN_IF_ERROR(CheckOutput(spec, 0, y));
  const float beta = spec.attributes.Float("beta", 1);
  if (!Has(spec, 2) || beta == 0) return MakeProduct(spec, product);
  ASSIGN_OR_RETURN(const Addend c, AddendOf(spec, y));
  product.add = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeProduct(spec, product));
  switch (product.dtype) {
    case DType::kFloat32:
      return MakeGemm<float>(std::move(kernel), c, beta);
    case DType::kFloat64:
      return MakeGemm<double>(std::move(kernel), c, beta);
    case DType::kInt32:
      return MakeGemm<int32_t>(std::move(kernel), c, beta);
    case DType::kInt64:
      return MakeGemm<int64_t>(std::move(kernel), c, beta);
    case DType::kUint32:
      return MakeGemm<uint32_t>(std::move(kernel), c, beta);
    case DType::kBFloat16:
    case DType::kFloat16:
      if (beta != 1) return NoKernelFor(spec, product.dtype);
      return MakeGemm<uint16_t>(std::move(kernel), c, 1);  // C is copied, as bits
    default:
      return MakeGemm<uint64_t>(std::move(kernel), c, beta);
  }
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", "", PrepareMatMul);
  registry.Add("Gemm", "", PrepareGemm);
  registry.Add("FusedMatMul", kPipecDomain, PrepareFusedMatMul);
}

}  // namespace pipec::cpu
