// FusedAttention and FusedAttentionGrad as plans of cuDNN (dnn_attention_graphs.h). Unimplemented where cuDNN has no
// plan whose results repeat bit by bit, or may give other results than the op's: float32, depths that are no
// multiples of 8, masks of bools or whose rows are not aligned.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/operands/attention.h"

namespace pipec::cuda {

// (Q, K, V, mask?) -> (O, log_sum_exp?). It keeps no weights: cuDNN goes over a row's columns block by block.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttention(const KernelSpec& spec, const Attention& a,
                                                         CudaContext& context);

// (dO, Q, K, V, O, log_sum_exp, mask?) -> (dQ, dK, dV), so many heads at a time that their dP is no larger than 64 MiB;
// Unimplemented if one head's is.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttentionGrad(const KernelSpec& spec, const Attention& a,
                                                             CudaContext& context);

}  // namespace pipec::cuda
