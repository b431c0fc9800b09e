// The kernels that multiply matrices on the CPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/matrix_product.h"

namespace pipec::cpu {

// Kernels (A, B, ...) -> (Y) of a simplified product: oneDNN's, which may have the activation kGelu, for float32 and,
// where the processor has them (else Unimplemented), for 16-bit floats; loops for float64 and integers.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnProduct(const MatrixProduct& product);
absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product);
// The same for a product of int32 whose elements are at most 255 in size.
absl::StatusOr<std::unique_ptr<Kernel>> MakeByteProduct(const KernelSpec& spec, const MatrixProduct& product);

}  // namespace pipec::cpu
