// MatMul (A, B) -> (Y), FusedMatMul (A, B, bias?, X?) -> (Y) with transposition, factor, activation and, of 16-bit
// floats, a float32 result, Gemm (A, B, C?) -> (Y): cuBLASLt's products of floats, whose algorithm is chosen at load,
// with a bias, Gelu and its gradient as their epilogues. 16-bit floats are added in float32, float32 is multiplied as
// such, not in fewer bits.
#include "runtime/base/status.h"
#include "runtime/device/activated_product.h"
#include "runtime/device/cuda/kernels/blas_product.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/epilogue_kernel.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/matmul.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/matrix_product.h"
#include "runtime/device/operands/sums.h"

namespace pipec::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads) Zero(T* y, int64_t n) {
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) y[i] = Narrow<T>(Compute<T>(0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product,
                                                    CudaContext& context) {
  product = Simplify(product);
  const int64_t results = product.batches() * product.m * product.n;
  if (results == 0 || (product.k == 0 && product.add)) {
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
  ASSIGN_OR_RETURN(std::shared_ptr<BlasProduct> blas,
                   BlasProduct::Create(spec, product, Epilogue::kNone, context));
  const int64_t workspace = blas->workspace_bytes();
  return MakeKernel(workspace,
                    [blas = std::move(blas)](cudaStream_t stream, const KernelArguments& arguments) {
                      return blas->Run(stream, arguments.inputs[0], arguments.inputs[1], arguments.outputs[0],
                                       arguments.workspace);
                    });
}

namespace {

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
class AddingKernel : public Kernel {
 public:
  AddingKernel(std::unique_ptr<Kernel> addend, std::unique_ptr<Kernel> product)
      : addend_(std::move(addend)), product_(std::move(product)) {}
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(addend_->Launch(stream, arguments));
    return product_->Launch(stream, arguments);
  }

 private:
  const std::unique_ptr<Kernel> addend_, product_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeAddingKernel(const KernelSpec& spec, const AddedProduct& added,
                                                         CudaContext& context) {
  const Addend& c = *added.addend;
  ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> addend, ForAllFloats(spec, added.product.result, [&c](auto tag) {
        using T = typename decltype(tag)::type;
        return MakeKernel(0, [c](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          if (c.rows * c.columns == 0) return absl::OkStatus();
          return Launch(Repeat<T>, BlocksFor(c.rows * c.columns), kThreads, stream, Input<T>(arguments, 2),
                        Output<T>(arguments, 0), c.rows, c.columns, c.row_step, c.column_step, c.beta);
        });
      }));
  MatrixProduct product = added.product;
  product.add = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeProduct(spec, product, context));
  return std::make_unique<AddingKernel>(std::move(addend), std::move(kernel));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAddedProduct(const KernelSpec& spec, const AddedProduct& added,
                                                         CudaContext& context) {
  const ProductActivation activation = added.product.activation;
  if (spec.accumulates && (added.addend || activation != ProductActivation::kNone))
    return Invalid(spec, "a product with a bias or an activation does not accumulate");
  if (!added.addend && activation == ProductActivation::kNone) {
    return MakeAccumulating(spec, [&](bool add) {
      MatrixProduct product = added.product;
      product.add = add;
      return MakeProduct(spec, product, context);
    });
  }
  const auto in_parts = [&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (activation == ProductActivation::kNone) return MakeAddingKernel(spec, added, context);
    return MakeActivatedProduct(
        spec, [&](const KernelSpec& part) { return Kernels().Find(part.op, part.domain)(part, context); });
  };
  const MatrixProduct product = Simplify(added.product);
  if ((added.addend && !added.addend->is_bias()) || product.batches() != 1 ||
      product.m * product.k * product.n == 0) {
    return in_parts();
  }
  const Epilogue epilogue = activation == ProductActivation::kGeluGrad ? Epilogue::kGeluGrad
                            : activation == ProductActivation::kNone   ? Epilogue::kBias
                            : added.addend                             ? Epilogue::kGeluBias
                                                                       : Epilogue::kGelu;
  absl::StatusOr<std::shared_ptr<BlasProduct>> blas = BlasProduct::Create(spec, product, epilogue, context);
  if (absl::IsUnimplemented(blas.status())) return in_parts();
  RETURN_IF_ERROR(blas.status());
  EpilogueOperands operands;
  if (epilogue != Epilogue::kGelu) operands.input = epilogue == Epilogue::kGeluGrad ? 3 : 2;
  return MakeEpilogueKernel(*std::move(blas), operands, in_parts);
}

template <absl::StatusOr<AddedProduct> (*kRead)(const KernelSpec& spec)>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const AddedProduct added, kRead(spec));
  return MakeAddedProduct(spec, added, context);
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", "", Prepare<ReadMatMul>);
  registry.Add("Gemm", "", Prepare<ReadGemm>);
  registry.Add("FusedMatMul", kPipecDomain, Prepare<ReadFusedMatMul>, /*adds=*/true);
}

}  // namespace pipec::cuda
