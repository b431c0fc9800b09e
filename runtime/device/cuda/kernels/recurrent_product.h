// The products of RNN, GRU and LSTM: y (m, n) = a (m, k) @ b, or y += that, in one type.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/cuda/kernels/blas_product.h"

namespace pipec::cuda {

class RecurrentProduct {
 public:
  // `transposed`: b is (n, k).
  static absl::StatusOr<RecurrentProduct> Create(const KernelSpec& spec, int64_t m, int64_t k, int64_t n,
                                                 bool transposed, bool add, CudaContext& context);

  int64_t workspace_bytes() const { return blas_ == nullptr ? 0 : blas_->workspace_bytes(); }
  absl::Status Run(cudaStream_t stream, const void* a, const void* b, void* y, void* workspace) const;

 private:
  std::shared_ptr<BlasProduct> blas_;        // null: nothing is added up
  int64_t zeroed_bytes_ = 0;                 // of a result that nothing is added to
};

}  // namespace pipec::cuda
