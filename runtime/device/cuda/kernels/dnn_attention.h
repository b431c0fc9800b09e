// FusedAttention as one plan of cuDNN, which keeps no weights: its kernels go over a row's columns block by block.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/attention.h"

namespace pipec::cuda {

// A kernel (Q, K, V, mask?) -> (O, log_sum_exp?). Unimplemented where cuDNN has no plan whose results repeat bit by
// bit and whose workspace does not grow with the square of the sequence, or may give other results than the op's:
// float32, depths that are no multiples of 8, masks of bools or that hide all of a row, to be zeros.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttention(const KernelSpec& spec, const Attention& a,
                                                         CudaContext& context);

}  // namespace pipec::cuda
