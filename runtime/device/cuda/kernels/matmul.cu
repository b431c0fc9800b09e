// MatMul (A, B) -> (Y), FusedMatMul (A, B) -> (Y) with transposition, factor and, of 16-bit floats, a float32 result,
// Gemm (A, B, C?) -> (Y): cuBLASLt's products of floats, whose algorithm is chosen at load. 16-bit floats are added in float32,
// float32 is multiplied as such, not in fewer bits.
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/blas_product.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/matmul.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads) Zero(T* y, int64_t n) {
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) y[i] = Narrow<T>(Compute<T>(0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product, bool add,
                                                    CudaContext& context) {
  product = Simplify(product);
  const int64_t results = product.batches() * product.m * product.n;
  if (results == 0 || (product.k == 0 && add)) {
    return MakeKernel(0, [](cudaStream_t, const KernelArguments&) { return absl::OkStatus(); });
  }
  if (product.k == 0) {
    return ForAllFloats(spec, product.result, [results](auto tag) {
      using T = typename decltype(tag)::type;
      return MakeKernel(0, [results](cudaStream_t stream, const KernelArguments& arguments) {
        return Launch(Zero<T>, BlocksFor(results), kThreads, stream, Output<T>(arguments, 0), results);
      });
    });
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const BlasProduct> blas, BlasProduct::Create(spec, product, add, context));
  const int64_t workspace = blas->workspace_bytes();
  return MakeKernel(workspace,
                    [blas = std::move(blas)](cudaStream_t stream, const KernelArguments& arguments) {
                      return blas->Run(stream, arguments.inputs[0], arguments.inputs[1], arguments.outputs[0],
                                       arguments.workspace);
                    });
}

namespace {

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMatMul(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  ASSIGN_OR_RETURN(const MatrixProduct product, ProductOf(spec, false, false));
  const Shape shape = ResultShape(spec.inputs[0].type, spec.inputs[1].type, product);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {product.dtype, shape}));
  return MakeProduct(spec, product, false, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareFusedMatMul(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("trans_a") != 0, spec.attributes.Int("trans_b") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  product.result = static_cast<DType>(spec.attributes.Int("to", static_cast<int64_t>(product.dtype)));
  const bool small = product.dtype == DType::kFloat16 || product.dtype == DType::kBFloat16;
  if (product.result != product.dtype && (product.result != DType::kFloat32 || !small)) {
    return NoKernelFor(spec, product.result);
  }
  const Shape shape = ResultShape(spec.inputs[0].type, spec.inputs[1].type, product);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {product.result, shape}));
  return MakeProduct(spec, product, false, context);
}

// beta * C in every place of Y; C repeats along an axis whose step is 0.
template <typename T>
__global__ void __launch_bounds__(kThreads) Repeat(const T* c, T* y, int64_t rows, int64_t columns,
                                                   int64_t row_step, int64_t column_step, float beta) {
  for (int64_t i = FirstItem(); i < rows * columns; i += ItemStride()) {
    const int64_t row = i / columns;
    const T value = c[row * row_step + (i - row * columns) * column_step];
    y[i] = Narrow<T>(static_cast<Compute<T>>(beta) * Widen(value));
  }
}

// Writes beta * C to Y, then lets the product add itself.
class GemmKernel : public Kernel {
 public:
  GemmKernel(std::unique_ptr<Kernel> addend, std::unique_ptr<Kernel> product)
      : addend_(std::move(addend)), product_(std::move(product)) {}
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(addend_->Launch(stream, arguments));
    return product_->Launch(stream, arguments);
  }

 private:
  const std::unique_ptr<Kernel> addend_, product_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGemm(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  if (spec.inputs[0].type.shape.size() != 2 || spec.inputs[1].type.shape.size() != 2) {
    return Invalid(spec, absl::StrCat("operands are ", ToString(spec.inputs[0].type), " and ",
                                      ToString(spec.inputs[1].type), ", wanted matrices"));
  }
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("transA") != 0, spec.attributes.Int("transB") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  const int64_t rows = product.m, columns = product.n;
  const TensorType y{product.dtype, {rows, columns}};
  RETURN_IF_ERROR(CheckOutput(spec, 0, y));
  const float beta = spec.attributes.Float("beta", 1);
  if (!Has(spec, 2) || beta == 0) return MakeProduct(spec, product, false, context);
  const TensorType& c = spec.inputs[2].type;
  Shape shape = c.shape;
  if (shape.size() < 2) shape.insert(shape.begin(), 2 - shape.size(), 1);
  if (c.dtype != y.dtype || shape.size() != 2 || (shape[0] != 1 && shape[0] != rows) ||
      (shape[1] != 1 && shape[1] != columns)) {
    return Invalid(spec, absl::StrCat("C is ", ToString(c), ", which does not broadcast to ", ToString(y)));
  }
  const int64_t row_step = shape[0] == 1 ? 0 : shape[1], column_step = shape[1] == 1 ? 0 : 1;
  ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> addend, ForAllFloats(spec, c.dtype, [=](auto tag) {
        using T = typename decltype(tag)::type;
        return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          if (rows * columns == 0) return absl::OkStatus();
          return Launch(Repeat<T>, BlocksFor(rows * columns), kThreads, stream, Input<T>(arguments, 2),
                        Output<T>(arguments, 0), rows, columns, row_step, column_step, beta);
        });
      }));
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeProduct(spec, product, true, context));
  return std::make_unique<GemmKernel>(std::move(addend), std::move(kernel));
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", "", PrepareMatMul);
  registry.Add("Gemm", "", PrepareGemm);
  registry.Add("FusedMatMul", kPipecDomain, PrepareFusedMatMul);
}

}  // namespace pipec::cuda
