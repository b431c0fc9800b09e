// Kernels (A, B) -> (Y) of matrix products, of which other ops are made.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {

// Y = A B, or Y += A B if `add`, of floats; empty products are fine. A workspace is to be aligned to 256 bytes.
absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product, bool add,
                                                    CudaContext& context);

}  // namespace pipec::cuda
