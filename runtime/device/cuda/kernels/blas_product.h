// A batch of matrix products by cuBLASLt.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {

class BlasProduct {
 public:
  // Of a simplified product that is not empty. `add`: Y += instead of Y =. Chooses the algorithms; Unimplemented if cuBLASLt
  // has none for these types.
  static absl::StatusOr<std::shared_ptr<const BlasProduct>> Create(const KernelSpec& spec,
                                                                   const MatrixProduct& product,
                                                                   bool add, CudaContext& context);
  virtual ~BlasProduct() = default;

  virtual int64_t workspace_bytes() const = 0;
  // The workspace is aligned to 256 bytes, as memory of cudaMalloc is.
  virtual absl::Status Run(cudaStream_t stream, const void* a, const void* b, void* y,
                           void* workspace) const = 0;
};

}  // namespace pipec::cuda
