// The kernels, other than matrix products, that oneDNN has: activations and, of float32, normalisations.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// (X) -> (Y), n elements of float32 or, where the processor has them (else Unimplemented), of 16 bits, computed in
// float32; tanh: the approximation.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnGelu(DType dtype, int64_t n, bool tanh);
// (dY, X) -> (dX).
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnGeluGrad(DType dtype, int64_t n, bool tanh);

// (X) -> (Y), rows of `length` elements. There is no LogSoftmax: oneDNN's is off by a few 1e-6.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnSoftmax(int64_t rows, int64_t length);

// (X, scale, bias?) -> (Y, mean, inv_std_dev), or (Y) alone without `statistics`.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnLayerNormalization(int64_t rows, int64_t length,
                                                                     float epsilon, bool bias,
                                                                     bool statistics);

}  // namespace pipec::cpu
