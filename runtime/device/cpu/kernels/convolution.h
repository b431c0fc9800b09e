// What Conv, ConvTranspose and the integer convolutions have in common.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/small_floats.h"
#include "runtime/device/cpu/kernels/convolution_loop.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// What oneDNN convolves in.
inline bool IsOneDnnFloat(DType dtype) { return dtype == DType::kFloat32 || IsSmallFloat(dtype); }

// float32 by oneDNN, and 16-bit floats where the processor has them (else
// Unimplemented): (X, W, bias?) -> (Y), no dimension of which is 0.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnConvolution(const Convolution &convolution, DType dtype,
                                                              bool transposed, bool bias);

// Whether each element of Y depends on the elements of X at its own place only, as a matrix product says it.
bool IsPointwise(const Convolution &convolution);

// float32 of a convolution that is pointwise and not transposed: (X, W, bias?) -> (Y), no dimension of which
// is 0.
absl::StatusOr<std::unique_ptr<Kernel>> MakePointwiseConvolution(const Convolution &convolution, bool bias);

// As MakeOneDnnConvolution: (dY, X) -> (dW) of a convolution that is not transposed,
// or, with `dy` = 1, (X, dY) -> (dW). With `add`, dW is added to what lies there.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnWeightGradient(const Convolution &convolution, DType dtype,
                                                                 int dy, bool add);

// Whether dW is large against what a matrix product makes it of.
bool HasFewWindows(const Convolution &convolution);

// The same in float32 of a convolution that has few windows.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWeightGradientProduct(const Convolution &convolution, int dy, bool add);

}  // namespace pipec::cpu
