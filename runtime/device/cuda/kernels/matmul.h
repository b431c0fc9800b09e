// Kernels (A, B) -> (Y) of matrix products, of which other ops are made.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cuda {

// Of floats, without a bias; empty products are fine. A workspace is to be aligned to 256 bytes.
absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product,
                                                    CudaContext& context);

}  // namespace pipec::cuda
