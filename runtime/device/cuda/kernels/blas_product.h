// A batch of matrix products by cuBLASLt.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {

// What is done beside the product, with a vector or a matrix of Y's type. Gelu is its tanh form; what it is taken of
// is not rounded before.
enum class Epilogue {
  kNone,
  kBias,      // the vector is added to each row of Y: N elements
  kSumOfA,    // it gets the sums of op(A) over its columns, of which a product has K: M elements
  kSumOfB,    // the sums of op(B) over its K rows: N elements
  kGelu,      // Y = gelu(product)
  kGeluBias,  // Y = gelu(product + the vector)
  kGeluGrad,  // Y = product times Gelu's slope at the matrix: M x N elements, N a multiple of 8
};

class BlasProduct {
 public:
  // Of a simplified product that is not empty, without batches if it has an epilogue. Chooses the algorithms;
  // Unimplemented if cuBLASLt has none for these types, or not with this epilogue: then for operands that are aligned.
  static absl::StatusOr<std::shared_ptr<BlasProduct>> Create(const KernelSpec& spec,
                                                             const MatrixProduct& product, Epilogue epilogue,
                                                             CudaContext& context);
  virtual ~BlasProduct() = default;

  virtual int64_t workspace_bytes() const = 0;
  // Whether all operands of Run must be Aligned.
  virtual bool aligned_only() const = 0;
  virtual bool Aligned(const void* a, const void* b, const void* y, const void* operand) const = 0;
  // The workspace is aligned to 256 bytes, as memory of cudaMalloc is. `operand`: the epilogue's vector or matrix.
  virtual absl::Status Run(cudaStream_t stream, const void* a, const void* b, void* y, void* workspace,
                           const void* operand = nullptr) = 0;
};

}  // namespace pipec::cuda
