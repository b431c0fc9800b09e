#include "runtime/device/cuda/kernels/recurrent_product.h"

#include <cuda_runtime_api.h>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {

absl::StatusOr<RecurrentProduct> RecurrentProduct::Create(const KernelSpec& spec, int64_t m, int64_t k,
                                                          int64_t n, bool transposed, bool add,
                                                          CudaContext& context) {
  MatrixProduct product;
  product.dtype = product.result = spec.inputs[0].type.dtype;
  product.m = m, product.k = k, product.n = n;
  product.transpose_b = transposed, product.add = add;
  RecurrentProduct made;
  if (m * k * n > 0) {
    ASSIGN_OR_RETURN(made.blas_, BlasProduct::Create(spec, Simplify(product), Epilogue::kNone, context));
  } else if (!add) {
    made.zeroed_bytes_ = m * n * SizeOf(product.dtype);
  }
  return made;
}

absl::Status RecurrentProduct::Run(cudaStream_t stream, const void* a, const void* b, void* y,
                                   void* workspace) const {
  if (blas_ != nullptr) return blas_->Run(stream, a, b, y, workspace);
  if (zeroed_bytes_ == 0) return absl::OkStatus();
  return CudaStatus(cudaMemsetAsync(y, 0, zeroed_bytes_, stream), "cudaMemsetAsync");
}

}  // namespace pipec::cuda
