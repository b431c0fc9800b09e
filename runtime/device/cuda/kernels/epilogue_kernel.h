// A product with an epilogue as a kernel. cuBLASLt may have the epilogue for operands alone that are aligned to 16
// bytes; others, which views of tensors can be, go the way of products without one.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/device/cuda/kernels/blas_product.h"
#include "runtime/device/device.h"

namespace pipec::cuda {

// Where a launch has what BlasProduct::Run is given; Y is output 0.
struct EpilogueOperands {
  int a = 0, b = 1;
  int input = -1, output = -1;  // the epilogue's operand is one of these, or there is none
};

// `in_parts` makes the same result without the epilogue; it is asked only if it may be needed.
absl::StatusOr<std::unique_ptr<Kernel>> MakeEpilogueKernel(
    std::shared_ptr<BlasProduct> product, const EpilogueOperands& operands,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>()> in_parts);

}  // namespace pipec::cuda
